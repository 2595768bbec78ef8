// POST /v1/images/generations, for OpenAI's SDKs and whatever speaks like them; with /v1, without, or with it twice,
// since that is how base addresses are pasted.
import { defineFrontend } from "tollgate/plugin";
import { images } from "tollgate/protocols/images";
import { at, deployed, deployment, onAzure, unnamed } from "./paths.ts";
import { accept, presented } from "./presented.ts";

export default defineFrontend({
  api: 1,
  name: "images",
  summary: "OpenAI's image generation",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: accept("bearer", "api-key") },
  },
  setup: ({ accept: schemes }) => ({
    protocol: images(),
    secret: (headers) => presented(headers, schemes),
    routes: [
      {
        method: "POST",
        path: [...at("/images/generations"), ...onAzure("/images/generations")],
        op: "generate",
      },
      {
        method: "POST",
        path: deployed("/images/generations"),
        op: "generate",
        protocol: unnamed(images()),
        read: deployment,
      },
    ],
  }),
});
