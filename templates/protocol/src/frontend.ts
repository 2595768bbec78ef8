import { defineFrontend } from "tollgate/plugin";
import { protocol } from "./index.ts";

export default defineFrontend({
  api: 1,
  name: "acme",
  summary: "Acme's API for clients: POST /acme/say",
  setup: () => ({
    protocol: protocol(),
    routes: [{ method: "POST", path: "/acme/say", actionType: "generate" }],
  }),
});
