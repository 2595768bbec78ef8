import { defineFrontend } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";

export default defineFrontend({
  api: 1,
  name: "acme",
  summary: "Acme's API for clients: chat at /acme/chat, with the model in the path or the body",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      path: {
        type: "string",
        pattern: "^/[a-z0-9/-]{1,64}$",
        default: "/acme",
        description: "Prefix of the paths",
      },
    },
  },
  setup: ({ path }) => ({
    // If the provider uses the same protocol, bytes are forwarded unchanged. Otherwise, the request is translated.
    protocol: chatCompletions(),
    routes: [
      { method: "POST", path: `${path}/chat`, actionType: "generate" },
      {
        method: "POST",
        path: `${path}/:provider/:model/chat`,
        actionType: "generate",
        readInput: (x, body) => ({
          model: `${x.params["provider"] ?? ""}/${x.params["model"] ?? ""}`,
          stream: body["stream"] === true,
        }),
      },
      {
        method: "GET",
        path: `${path}/health`,
        allowUnauthenticated: true,
        handle: () => ({ status: 200, body: { ok: true } }),
      },
    ],
    // Acme's clients send their key in this header or in Authorization.
    extractCredential: (headers) => {
      const own = headers["x-acme-key"];
      const bearer = /^Bearer (\S+)$/i.exec(String(headers["authorization"] ?? ""))?.[1];
      return (typeof own === "string" && own !== "" ? own : undefined) ?? bearer;
    },
  }),
});
