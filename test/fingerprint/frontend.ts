import { defineFrontend } from "tollgate/plugin";
import { fingerprints } from "./fingerprint.ts";

export default defineFrontend({
  api: 1,
  name: "fingerprints",
  summary: "Fingerprints of texts",
  setup: () => ({
    protocol: fingerprints(),
    routes: [{ method: "POST", path: "/v1/fingerprints", actionType: "generate" }],
  }),
});
