// The list of instances, kept up to date by a stream of events.
//
// The stream begins with the present instances and a bookmark that says "synced"; changes follow. A browser reconnects by
// itself and sends its cursor. If that is too old, the server says "gone", and the list starts over. A script cannot read
// why a stream was rejected, so it requests the session. User input is only ever set as text.
"use strict";

(() => {
  const RETRY_MS = 5000;
  const part = (id) => document.getElementById(id);
  const section = part("instances");
  const [list, count, none, trouble, left, who] = ["list", "count", "none", "trouble", "left", "who"].map(part);
  const instances = new Map();
  let source = null;
  let isSynced = false;

  const element = (tag, className, text) => {
    const node = document.createElement(tag);
    if (className) node.className = className;
    node.textContent = text;
    return node;
  };

  const kind = (status) => ({ provisioned: " good", error: " bad" })[status] || "";

  // An instance that was provisioned and has failed since is "error", as the command line shows it.
  const stateOf = (metadata) =>
    metadata.provisioningStatus === "provisioned" && metadata.healthStatus === "error"
      ? ["error", metadata.healthStatusDetail]
      : [metadata.provisioningStatus, metadata.provisioningStatusDetail];

  const row = ({ metadata, status }) => {
    const node = document.createElement("li");
    const about = document.createElement("div");
    const facts = [status.powerState, status.privateIP, status.publicIP].filter(Boolean);
    about.append(element("strong", "", metadata.name), element("span", "quiet", facts.join(" · ") || "no address yet"));
    const [state, why] = stateOf(metadata);
    const badge = element("span", `state${kind(state)}`, state);
    if (why && state !== "provisioned") badge.title = why.message;
    node.append(about, badge);
    return node;
  };

  const byName = (one, other) =>
    one.metadata.name.localeCompare(other.metadata.name) || one.metadata.id.localeCompare(other.metadata.id);

  const show = () => {
    const known = [...instances.values()].sort(byName);
    list.replaceChildren(...known.map(row));
    none.hidden = !isSynced || known.length > 0;
    count.hidden = isSynced && known.length === 0;
    count.textContent = isSynced ? `${known.length} ${known.length === 1 ? "instance" : "instances"}` : "Loading…";
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

  const startOver = () => {
    close();
    instances.clear();
    isSynced = false;
    open();
  };

  const session = () => fetch("/console/session", { cache: "no-store" }).catch(() => null); // null: the server is unreachable

  const ask = async () => {
    const response = await session();
    if (response && response.status === 401) leave();
    else setTimeout(startOver, RETRY_MS);
  };

  const comeBack = async () => {
    const response = await session();
    if (response && response.ok) location.reload(); // the user may have logged in again in another tab
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
    source.addEventListener("gone", startOver);
    source.addEventListener("end", (message) => {
      const { reason } = JSON.parse(message.data);
      if (reason === "access_changed") startOver();
      if (reason === "unauthenticated" || reason === "expired") leave();
    });
    source.addEventListener("error", () => {
      say("The connection is lost, so this list may be outdated. Reconnecting…");
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
