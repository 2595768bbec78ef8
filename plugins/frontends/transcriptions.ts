// POST /v1/audio/transcriptions and /v1/audio/translations, for OpenAI's SDKs and whatever speaks like them; with /v1, without, or with
// it twice, since that is how base addresses are pasted.
import { defineFrontend } from "tollgate/plugin";
import { transcriptions } from "tollgate/protocols/transcriptions";
import {
  versionedPaths,
  deploymentPaths,
  readDeployment,
  azurePaths,
  withModelFromPath,
} from "./route-paths.ts";
import { acceptOption, extractCredential } from "./client-credential.ts";

const ROUTES = [
  ["generate", "/audio/transcriptions"],
  ["translations", "/audio/translations"],
] as const;

export default defineFrontend({
  api: 1,
  name: "transcriptions",
  summary: "OpenAI's transcriptions and translations of sound",
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
      {
        method: "POST",
        path: deploymentPaths(path),
        actionType: "generate" as const,
        action: name,
        body: "multipart" as const,
        protocol: withModelFromPath(transcriptions()),
        readInput: readDeployment,
      },
    ]),
  }),
});
