// Frontend for POST /v1/audio/transcriptions and /v1/audio/translations, for OpenAI's SDKs and
// compatible clients. Accepts paths with /v1, without it, or with it twice, because users configure
// base URLs of all these forms.
import { defineFrontend } from "tollgate/plugin";
import { transcriptions } from "tollgate/protocols/transcriptions";
import { acceptOption, extractCredential } from "./client-credential.ts";
import { azurePaths, deploymentRoute, versionedPaths } from "./route-paths.ts";

const ROUTES = [
  ["generate", "/audio/transcriptions"],
  ["translations", "/audio/translations"],
] as const;

export default defineFrontend({
  api: 1,
  name: "transcriptions",
  summary: "Serve OpenAI audio transcription and translation",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: acceptOption("bearer", "api-key") },
  },
  setup: ({ accept: schemes }) => ({
    protocol: transcriptions(),
    extractCredential: (headers) => extractCredential(headers, schemes),
    routes: ROUTES.flatMap(([name, path]) => [
      {
        method: "POST",
        path: [...versionedPaths(path), ...azurePaths(path)],
        actionType: "generate" as const,
        action: name,
        body: "multipart" as const,
      },
      { ...deploymentRoute(path, transcriptions()), action: name, body: "multipart" as const },
    ]),
  }),
});
