// POST /v1/images/generations and /v1/images/edits, for OpenAI's SDKs and whatever speaks like them; with /v1, without, or with it
// twice, since that is how base addresses are pasted.
import { defineFrontend, fail } from "tollgate/plugin";
import { imageEdits, images } from "tollgate/protocols/images";
import { at, deployed, deployment, onAzure, onGoogle, unnamed } from "./paths.ts";
import { accept, presented } from "./presented.ts";

export default defineFrontend({
  api: 1,
  name: "images",
  summary: "OpenAI's image generation and edits",
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
        path: [
          ...at("/images/generations"),
          ...onAzure("/images/generations"),
          ...onGoogle("/images/generations"),
        ],
        op: "generate",
      },
      {
        method: "POST",
        path: deployed("/images/generations"),
        op: "generate",
        protocol: unnamed(images()),
        read: deployment,
      },
      {
        method: "POST",
        path: [...at("/images/edits"), ...onAzure("/images/edits")],
        op: "generate",
        name: "edits",
        body: "either",
        protocol: imageEdits(),
      },
      {
        method: "POST",
        path: deployed("/images/edits"),
        op: "generate",
        name: "edits",
        body: "either",
        protocol: unnamed(imageEdits()),
        read: deployment,
      },
      {
        method: "POST",
        path: [...at("/images/variations"), ...onAzure("/images/variations")],
        serve: () =>
          fail(
            "not_found",
            "Variations were dall-e-2's alone, which is gone. Send the picture to /v1/images/edits with a prompt.",
            { code: "unknown_method" },
          ),
      },
    ],
  }),
});
