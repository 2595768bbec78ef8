// POST /v1/audio/speech, for OpenAI's SDKs and whatever speaks like them; with /v1, without, or with it twice, since that is how
// base addresses are pasted.
import {
  defineFrontend,
  fail,
  type RequestHead,
  type Body,
  type RouteInput,
} from "tollgate/plugin";
import { speech } from "tollgate/protocols/speech";
import {
  versionedPaths,
  deploymentPaths,
  readDeployment,
  azurePaths,
  withModelFromPath,
} from "./route-paths.ts";
import { acceptOption, extractCredential } from "./client-credential.ts";

export default defineFrontend({
  api: 1,
  name: "speech",
  summary: "OpenAI's speech",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: acceptOption("bearer", "api-key") },
  },
  setup: ({ accept: schemes }) => ({
    protocol: speech(),
    extractCredential: (headers) => extractCredential(headers, schemes),
    routes: [
      {
        method: "POST",
        path: [...versionedPaths("/audio/speech"), ...azurePaths("/audio/speech")],
        actionType: "generate",
        readInput: (_x, { model }) =>
          asStream({
            model:
              typeof model === "string"
                ? model
                : fail("invalid", "model is required.", { param: "model" }),
          }),
      },
      {
        method: "POST",
        path: deploymentPaths("/audio/speech"),
        actionType: "generate",
        protocol: withModelFromPath(speech()),
        readInput: (x: RequestHead, body: Body) => asStream(readDeployment(x, body)),
      },
    ],
  }),
});

/** Clients read sound as it comes, and do not ask for a stream. */
const asStream = (read: RouteInput): RouteInput => ({ ...read, stream: true });
