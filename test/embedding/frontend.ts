import { defineFrontend } from "tollgate/plugin";
import { embeddings } from "./embedding.ts";

export default defineFrontend({
  api: 1,
  name: "embeddings",
  summary: "OpenAI's embeddings",
  setup: () => ({
    protocol: embeddings(),
    routes: [{ method: "POST", path: "/v1/embeddings", op: "generate" }],
  }),
});
