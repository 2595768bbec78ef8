// Frontend for POST /v1/completions, OpenAI's legacy endpoint, which editors and base models
// without chat use.
import { defineFrontend } from "tollgate/plugin";
import { completions } from "tollgate/protocols/completions";
import { acceptOption, extractCredential } from "./client-credential.ts";
import { versionedPaths } from "./route-paths.ts";

export default defineFrontend({
  api: 1,
  name: "completions",
  summary: "Serve OpenAI's legacy completions and fill-in-the-middle",
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
