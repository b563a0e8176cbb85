"use strict";
(() => {
  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (each) => each.charCodeAt(0));
  const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const descriptors = (list) => list.map((each) => ({ ...each, id: bytes(each.id) }));

  const create = async (options) => {
    const { rawId, response } = await navigator.credentials.create({ publicKey: {
      ...options,
      challenge: bytes(options.challenge),
      user: { ...options.user, id: bytes(options.user.id) },
      excludeCredentials: descriptors(options.excludeCredentials),
    } });
    return { rawId: text(rawId), response: {
      clientDataJSON: text(response.clientDataJSON),
      attestationObject: text(response.attestationObject),
      transports: response.getTransports ? response.getTransports() : [],
    } };
  };

  const get = async (options) => {
    const { rawId, response } = await navigator.credentials.get({ publicKey: {
      ...options,
      challenge: bytes(options.challenge),
      allowCredentials: descriptors(options.allowCredentials),
    } });
    return { rawId: text(rawId), response: {
      clientDataJSON: text(response.clientDataJSON),
      authenticatorData: text(response.authenticatorData),
      signature: text(response.signature),
    } };
  };

  const problems = {
    InvalidStateError: "This authenticator is already one of yours: use another one.",
    NotAllowedError: "Nothing was confirmed in time, or it was cancelled: try again.",
    SecurityError: "The browser does not allow passkeys at this address: open this page by its name, over https.",
  };

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    const problem = form.querySelector("[role=alert]");
    const button = form.querySelector("button");
    form.hidden = false;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      problem.hidden = true;
      button.disabled = true;
      try {
        if (!window.PublicKeyCredential) throw new Error("This browser has no passkeys: use another one.");
        const use = form.dataset.passkey === "create" ? create : get;
        form.elements.credential.value = JSON.stringify(await use(JSON.parse(form.dataset.options)));
        form.submit();
      } catch (error) {
        problem.textContent = problems[error.name] || error.message;
        problem.hidden = false;
        button.disabled = false;
      }
    });
  }
})();
