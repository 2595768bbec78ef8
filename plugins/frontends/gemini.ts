// Frontend for Google's Gemini API, which its SDKs, Gemini CLI, and clients built on them call. The
// path contains the model and the method, and clients write it in several ways.
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
import { geminiLive, setupModel } from "tollgate/protocols/gemini-live";
import { images } from "tollgate/protocols/images";
import {
  toGeminiModel,
  createGeminiPage,
  findModel,
  readModelFilter,
} from "./models/model-lists.ts";
import { acceptOption, extractCredential } from "./client-credential.ts";

const VERSIONS = ["v1beta", "v1alpha"];
/**
 * Paths with and without a version, because LiteLLM adds none to a base URL. The models frontend
 * serves `GET /v1/models`.
 */
const MODEL_PATHS = [
  ...VERSIONS.map((version) => `/${version}/**:target`),
  "/v1/models/**:target",
  "/models/**:target",
];

/**
 * Paths of the Live API. The model is in the first message. Google's JavaScript SDK sends two
 * slashes at the beginning.
 */
const LIVE_PATHS = ["/", "//"].flatMap((slash) =>
  [...VERSIONS, "v1"].map(
    (version) =>
      `${slash}ws/google.ai.generativelanguage.${version}.GenerativeService.BidiGenerateContent`,
  ),
);

const google = gemini().server!;
const openai = images().server!;
const OPENAI = "/v1beta/openai/";

/** A repeated version, and the segment `models/` before the model. */
const PATH_PREFIX = /^(?:(?:v1|v1beta|v1alpha)\/)?(?:models\/)?/;

export default defineFrontend({
  api: 1,
  name: "gemini",
  summary: "Serve the Gemini API at POST /v1beta/models, and the Live API over WebSockets",
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
      // Clients of OpenAI's API use a base URL below /v1beta/openai, where some paths have no
      // route. They get errors in OpenAI's format.
      encodeFault: (fault, x, to) =>
        (x.path.startsWith(OPENAI) ? openai : google).encodeFault(fault, to),
      sockets: [
        {
          path: LIVE_PATHS,
          protocol: geminiLive(),
          action: "live",
          readsFirstMessage: true,
          readModel: (_x, first) => ({ model: setupModel(first) }),
        },
      ],
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
            const input = readGeminiInput(x, body, model, verb);
            return input.edits?.["alt"] === "json" ? { ...input, protocol: listed } : input;
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

/**
 * Splits a target into model and method. Model names may contain colons, so the last colon
 * separates them.
 */
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
    fail("invalid", "Missing model in the path.", { param: "model", code: "invalid_request" });
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
    fail("invalid", "generateContentRequest is allowed only in countTokens requests.", {
      param: "generateContentRequest",
      code: "invalid_request",
    });
  const alt = stream && query.get("alt") !== "sse" ? "json" : undefined;
  // Values in the path override those in the body.
  return { model, actionType, action, stream, edits: { model, stream, alt } };
}
