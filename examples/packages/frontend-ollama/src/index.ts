// The routes of Ollama's API. The gateway does the rest of a request.
import { createHash } from "node:crypto";
import {
  defineFrontend,
  fail,
  type Body,
  type JsonObject,
  type ListedModel,
  type RequestHead,
} from "tollgate/plugin";
import { ollamaChat, ollamaGenerate } from "./protocol.ts";

/** Version of Ollama whose API this is. Clients use it to detect features. */
const VERSION = "0.12.0";

const DETAILS = {
  parent_model: "",
  format: "gateway",
  family: "",
  families: [],
  parameter_size: "",
  quantization_level: "",
};

const modelEntry = ({ id, released }: ListedModel): JsonObject => ({
  name: id,
  model: id,
  modified_at: `${released ?? "1970-01-01"}T00:00:00Z`,
  size: 0,
  digest: createHash("sha256").update(id).digest("hex"),
  details: DETAILS,
});

const capabilitiesOf = ({ can }: ListedModel): readonly string[] => [
  "completion",
  ...(can?.tools ? ["tools"] : []),
  ...(can?.vision ? ["vision"] : []),
  ...(can?.reasoning ? ["thinking"] : []),
];

/** Ollama streams by default. */
const readInput = (_: RequestHead, { model, stream }: Body) =>
  typeof model === "string" && model !== ""
    ? { model, stream: stream !== false }
    : fail("invalid", "Missing model.", { param: "model" });

export default defineFrontend({
  api: 1,
  name: "ollama",
  summary: "Serve Ollama's API: chat, prompts, and the list of models",
  setup(_, ctx) {
    const modelsOf = ({ identity, privacy }: RequestHead) =>
      ctx.catalog.list({ identity, privacy, operation: "chat" });
    return {
      protocol: ollamaChat(),
      routes: [
        { method: "POST", path: "/api/chat", actionType: "generate", readInput },
        {
          method: "POST",
          path: "/api/generate",
          actionType: "generate",
          protocol: ollamaGenerate(),
          readInput,
        },
        {
          method: "GET",
          path: "/api/tags",
          handle: (x) => ({ status: 200, body: { models: modelsOf(x).map(modelEntry) } }),
        },
        {
          method: "POST",
          path: "/api/show",
          body: "json",
          handle(x, { model, name }) {
            const found = modelsOf(x).find(({ id }) => id === (model ?? name));
            if (!found) return fail("not_found", `Model "${String(model ?? name)}" not found.`);
            const { details, modified_at: at } = modelEntry(found);
            return {
              status: 200,
              body: {
                details,
                modified_at: at,
                capabilities: capabilitiesOf(found),
                model_info: {},
              },
            };
          },
        },
        {
          method: "GET",
          path: "/api/version",
          allowUnauthenticated: true,
          handle: () => ({ status: 200, body: { version: VERSION } }),
        },
      ],
    };
  },
});
