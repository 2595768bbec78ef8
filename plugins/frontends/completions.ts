// POST /v1/completions: the older one of OpenAI's, for editors and for models that have learnt no chat.
import { defineFrontend } from "tollgate/plugin";
import { completions } from "tollgate/protocols/completions";
import { versionedPaths } from "./route-paths.ts";
import { acceptOption, extractCredential } from "./client-credential.ts";

export default defineFrontend({
  api: 1,
  name: "completions",
  summary: "OpenAI's older completions, and filling in the middle",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: acceptOption("bearer") },
  },
  setup: ({ accept: schemes }) => ({
    protocol: completions(),
    extractCredential: (headers) => extractCredential(headers, schemes),
    routes: [{ method: "POST", path: versionedPaths("/completions"), actionType: "generate" }],
  }),
});
