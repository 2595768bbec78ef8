// Frontend for POST /v1/images/generations and /v1/images/edits, for OpenAI's SDKs and compatible
// clients. Accepts paths with /v1, without it, or with it twice, because users configure base URLs
// of all these forms.
import { defineFrontend, fail } from "tollgate/plugin";
import { imageEdits, images } from "tollgate/protocols/images";
import { acceptOption, extractCredential } from "./client-credential.ts";
import { azurePaths, deploymentRoute, googlePaths, versionedPaths } from "./route-paths.ts";

export default defineFrontend({
  api: 1,
  name: "images",
  summary: "Serve OpenAI image generation and edits",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: acceptOption("bearer", "api-key") },
  },
  setup: ({ accept: schemes }) => ({
    protocol: images(),
    extractCredential: (headers) => extractCredential(headers, schemes),
    routes: [
      {
        method: "POST",
        path: [
          ...versionedPaths("/images/generations"),
          ...azurePaths("/images/generations"),
          ...googlePaths("/images/generations"),
        ],
        actionType: "generate",
      },
      deploymentRoute("/images/generations", images()),
      {
        method: "POST",
        path: [...versionedPaths("/images/edits"), ...azurePaths("/images/edits")],
        actionType: "generate",
        action: "edits",
        body: "either",
        protocol: imageEdits(),
      },
      { ...deploymentRoute("/images/edits", imageEdits()), action: "edits", body: "either" },
      {
        method: "POST",
        path: [...versionedPaths("/images/variations"), ...azurePaths("/images/variations")],
        handle: () =>
          fail(
            "not_found",
            "Image variations are not supported, because they required the retired model " +
              "dall-e-2. Send the image to /v1/images/edits with a prompt.",
            { code: "unknown_method" },
          ),
      },
    ],
  }),
});
