// POST /v1/audio/speech, for OpenAI's SDKs and whatever speaks like them; with /v1, without, or with it twice, since that is how
// base addresses are pasted.
import { defineFrontend, fail, type Arrival, type Body, type RouteInput } from "tollgate/plugin";
import { speech } from "tollgate/protocols/speech";
import { at, deployed, deployment, onAzure, unnamed } from "./paths.ts";
import { accept, presented } from "./presented.ts";

export default defineFrontend({
  api: 1,
  name: "speech",
  summary: "OpenAI's speech",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: accept("bearer", "api-key") },
  },
  setup: ({ accept: schemes }) => ({
    protocol: speech(),
    secret: (headers) => presented(headers, schemes),
    routes: [
      {
        method: "POST",
        path: [...at("/audio/speech"), ...onAzure("/audio/speech")],
        op: "generate",
        read: (_x, { model }) =>
          asItComes({
            model:
              typeof model === "string"
                ? model
                : fail("invalid", "model is required.", { param: "model" }),
          }),
      },
      {
        method: "POST",
        path: deployed("/audio/speech"),
        op: "generate",
        protocol: unnamed(speech()),
        read: (x: Arrival, body: Body) => asItComes(deployment(x, body)),
      },
    ],
  }),
});

/** Clients read sound as it comes, and do not ask for a stream. */
const asItComes = (read: RouteInput): RouteInput => ({ ...read, stream: true });
