// Google's Gemini API: what its SDKs, Gemini CLI and the clients that are built on them call. The model and what is asked of it
// stand in the path, which these clients write in more than one way.
import {
  defineFrontend,
  fail,
  type RequestHead,
  type Body,
  type Protocol,
  type RouteInput,
} from "tollgate/plugin";
import {
  gemini,
  geminiEmbedding,
  geminiSingleEmbedding,
  geminiJsonList,
} from "tollgate/protocols/gemini";
import { images } from "tollgate/protocols/images";
import { toGeminiModel, createGeminiPage } from "./models/gemini-list.ts";
import { findModel, readModelFilter } from "./models/model-filter.ts";
import { acceptOption, extractCredential } from "./client-credential.ts";

const VERSIONS = ["v1beta", "v1alpha"];
/** With a version, or without: LiteLLM adds none to a base URL. `GET /v1/models` belongs to the list of models. */
const MODEL_PATHS = [
  ...VERSIONS.map((version) => `/${version}/**:target`),
  "/v1/models/**:target",
  "/models/**:target",
];

const google = gemini().server!;
const openai = images().server!;
const OPENAI = "/v1beta/openai/";

/** A version that is written twice, and the word that says that a model follows. */
const PATH_PREFIX = /^(?:(?:v1|v1beta|v1alpha)\/)?(?:models\/)?/;

export default defineFrontend({
  api: 1,
  name: "gemini",
  summary: "Google's Gemini API: POST /v1beta/models/<model>:generateContent",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: acceptOption("x-goog-api-key", "key", "bearer") },
  },
  setup({ accept: schemes }, ctx) {
    const protocol = gemini();
    const listed = geminiJsonList();
    const vectors: { readonly [verb: string]: Protocol } = {
      batchEmbedContents: geminiEmbedding(),
      embedContent: geminiSingleEmbedding(),
    };
    const models = (x: RequestHead) => {
      const { operation, provider, privacy } = readModelFilter(x, ctx.catalog.operations());
      const all = ctx.catalog.list({ identity: x.identity, privacy, operation });
      return provider === undefined ? all : all.filter((model) => model.provider === provider);
    };
    return {
      protocol,
      extractCredential: (headers, query) => extractCredential(headers, schemes, query),
      // Clients of OpenAI's API have a base URL below ours, and no route for all of its paths.
      encodeFault: (fault, x, to) =>
        (x.path.startsWith(OPENAI) ? openai : google).encodeFault(fault, to),
      routes: [
        {
          method: "POST",
          path: MODEL_PATHS,
          actionType: "generate",
          protocols: [listed, ...Object.values(vectors)],
          readInput: (x, body) => {
            const { model, verb } = targetOf(x, Object.keys(vectors));
            const protocol = vectors[verb];
            if (protocol) return { model, stream: false, edits: { model }, protocol };
            const asked = readGeminiInput(x, body, model, verb);
            return asked.edits?.["alt"] === "json" ? { ...asked, protocol: listed } : asked;
          },
        },
        {
          method: "GET",
          path: VERSIONS.map((version) => `/${version}/models`),
          handle: (x) => ({ status: 200, body: createGeminiPage(models(x), x.query) }),
        },
        {
          method: "GET",
          path: VERSIONS.map((version) => `/${version}/models/**:id`),
          handle: (x) => ({
            status: 200,
            body: toGeminiModel(findModel(models(x), x.params["id"] ?? "")),
          }),
        },
      ],
    };
  },
});

const ACTIONS_BY_VERB: {
  readonly [verb: string]: Pick<RouteInput, "actionType" | "action" | "stream">;
} = {
  generateContent: { actionType: "generate", stream: false },
  streamGenerateContent: { actionType: "generate", stream: true },
  countTokens: { actionType: "count", action: "count", stream: false },
};

/** Names of models have colons too: the last one stands before what is asked. */
function targetOf(
  { params }: RequestHead,
  more: readonly string[],
): { model: string; verb: string } {
  const target = params["target"] ?? "";
  const colon = target.lastIndexOf(":");
  const verb = target.slice(colon + 1);
  const known = [...Object.keys(ACTIONS_BY_VERB), ...more];
  if (colon < 0 || !known.includes(verb))
    return fail(
      "not_found",
      `Unknown method "${colon < 0 ? target : verb}". Use ${known.join(", ")}, each as /v1beta/models/<model>:<method>.`,
      { code: "unknown_method" },
    );
  const model = target.slice(0, colon).replace(PATH_PREFIX, "");
  if (model === "")
    fail("invalid", "The path names no model.", { param: "model", code: "invalid_request" });
  return { model, verb };
}

function readGeminiInput(
  { query }: RequestHead,
  body: Body,
  model: string,
  verb: string,
): RouteInput {
  const { actionType, action, stream } = ACTIONS_BY_VERB[verb]!;
  if (
    actionType === "generate" &&
    (body["generateContentRequest"] ?? body["generate_content_request"])
  )
    fail("invalid", "generateContentRequest is asked of countTokens alone.", {
      param: "generateContentRequest",
      code: "invalid_request",
    });
  const alt = stream && query.get("alt") !== "sse" ? "json" : undefined;
  // Where the body says the same, what stands in the path counts.
  return { model, actionType, action, stream, edits: { model, stream, alt } };
}
