// Frontend for POST /v1/audio/speech, for OpenAI's SDKs and compatible clients. Accepts paths with
// /v1, without it, or with it twice, because users configure base URLs of all these forms.
import {
  defineFrontend,
  fail,
  type RequestHead,
  type Body,
  type RouteInput,
} from "tollgate/plugin";
import { speech } from "tollgate/protocols/speech";
import { acceptOption, extractCredential } from "./client-credential.ts";
import { azurePaths, deploymentRoute, readDeployment, versionedPaths } from "./route-paths.ts";

export default defineFrontend({
  api: 1,
  name: "speech",
  summary: "Serve OpenAI text-to-speech",
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
                : fail("invalid", "Missing model.", { param: "model" }),
          }),
      },
      {
        ...deploymentRoute("/audio/speech", speech()),
        readInput: (x: RequestHead, body: Body) => asStream(readDeployment(x, body)),
      },
    ],
  }),
});

/** Clients play audio while they receive it, without requesting a stream. */
const asStream = (read: RouteInput): RouteInput => ({ ...read, stream: true });
