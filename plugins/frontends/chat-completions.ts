// Frontend for chat completions, the endpoint that OpenAI's SDKs and nearly all other clients call.
import { defineFrontend } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { acceptOption, extractCredential } from "./client-credential.ts";
import { azurePaths, deploymentRoute, googlePaths, versionedPaths } from "./route-paths.ts";

export default defineFrontend({
  api: 1,
  name: "chat-completions",
  summary: "Serve OpenAI chat completions at POST /v1/chat/completions",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: acceptOption("bearer", "api-key") },
  },
  setup: ({ accept: schemes }) => ({
    protocol: chatCompletions(),
    extractCredential: (headers) => extractCredential(headers, schemes),
    routes: [
      {
        method: "POST",
        path: [
          ...versionedPaths("/chat/completions"),
          ...azurePaths("/chat/completions"),
          ...googlePaths("/chat/completions"),
        ],
        actionType: "generate",
      },
      deploymentRoute("/chat/completions", chatCompletions()),
    ],
  }),
});
