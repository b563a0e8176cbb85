// The list of instances, kept as it is by a stream of events.
//
// The stream begins with what is there and a bookmark that says "synced"; then come changes. A browser connects again by
// itself, and tells where it was. Where that is too long ago the server says "gone", and we begin anew. Why a stream was
// refused a script is not told, so it asks who is logged in. What others wrote is only ever set as text.
"use strict";

(() => {
  const AGAIN_MS = 5000;
  const part = (id) => document.getElementById(id);
  const section = part("instances");
  const [list, count, none, trouble, left, who] = ["list", "count", "none", "trouble", "left", "who"].map(part);
  const instances = new Map();
  let source = null;
  let isSynced = false;

  const element = (tag, className, text) => {
    const made = document.createElement(tag);
    if (className) made.className = className;
    made.textContent = text;
    return made;
  };

  const kind = (status) => ({ provisioned: " good", error: " bad", broken: " bad" })[status] || "";

  // An instance can be as it was asked to be, and have a server that broke since.
  const stateOf = ({ metadata, status }) =>
    status.powerState === "Error" && metadata.provisioningStatus === "provisioned"
      ? ["broken", metadata.healthStatusDetail]
      : [metadata.provisioningStatus, metadata.provisioningStatusDetail];

  const row = ({ metadata, status }) => {
    const made = document.createElement("li");
    const about = document.createElement("div");
    const facts = [status.powerState, status.privateIP, status.publicIP].filter(Boolean);
    about.append(element("strong", "", metadata.name), element("span", "quiet", facts.join(" · ") || "no address yet"));
    const [state, why] = stateOf({ metadata, status });
    const badge = element("span", `state${kind(state)}`, state);
    if (why && state !== "provisioned") badge.title = why.message;
    made.append(about, badge);
    return made;
  };

  const byName = (one, other) =>
    one.metadata.name.localeCompare(other.metadata.name) || one.metadata.id.localeCompare(other.metadata.id);

  const show = () => {
    const known = [...instances.values()].sort(byName);
    list.replaceChildren(...known.map(row));
    none.hidden = !isSynced || known.length > 0;
    count.hidden = isSynced && known.length === 0;
    count.textContent = isSynced ? `${known.length} ${known.length === 1 ? "instance" : "instances"}` : "Looking…";
  };

  let isDue = false;
  const soon = () => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      show();
    });
  };

  const say = (text) => {
    trouble.textContent = text;
    trouble.hidden = !text;
  };

  const put = (message) => {
    const instance = JSON.parse(message.data);
    instances.set(instance.metadata.id, instance);
    soon();
  };

  const remove = (message) => {
    instances.delete(JSON.parse(message.data).metadata.id);
    soon();
  };

  const close = () => {
    if (source) source.close();
    source = null;
  };

  const leave = () => {
    close();
    instances.clear();
    isSynced = false;
    show();
    say("");
    count.hidden = who.hidden = true;
    left.hidden = false;
  };

  const anew = () => {
    close();
    instances.clear();
    isSynced = false;
    open();
  };

  const session = () => fetch("/console/session", { cache: "no-store" }).catch(() => null); // null: nobody answers

  const ask = async () => {
    const answer = await session();
    if (answer && answer.status === 401) leave();
    else setTimeout(anew, AGAIN_MS);
  };

  const comeBack = async () => {
    const answer = await session();
    if (answer && answer.ok) location.reload(); // as whoever has logged in meanwhile, in another tab
  };

  const open = () => {
    source = new EventSource(section.dataset.stream);
    source.addEventListener("open", () => say(""));
    source.addEventListener("added", put);
    source.addEventListener("modified", put);
    source.addEventListener("deleted", remove);
    source.addEventListener("bookmark", (message) => {
      if (!JSON.parse(message.data).synced) return;
      isSynced = true;
      soon();
    });
    source.addEventListener("gone", anew);
    source.addEventListener("end", (message) => {
      const { reason } = JSON.parse(message.data);
      if (reason === "access_changed") anew();
      if (reason === "unauthenticated" || reason === "expired") leave();
    });
    source.addEventListener("error", () => {
      say("The connection is lost: what you see may be old. It is tried again by itself.");
      if (source && source.readyState === EventSource.CLOSED) {
        close();
        ask();
      }
    });
  };

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && !left.hidden) comeBack();
  });
  show();
  open();
})();
