// Google's Gemini API: what its SDKs, Gemini CLI and the clients that are built on them call. The model and what is asked of it
// stand in the path, which these clients write in more than one way.
import {
  defineFrontend,
  fail,
  type Arrival,
  type Body,
  type Protocol,
  type RouteInput,
} from "tollgate/plugin";
import {
  gemini,
  geminiEmbedding,
  geminiEmbeddingOne,
  geminiListed,
} from "tollgate/protocols/gemini";
import { images } from "tollgate/protocols/images";
import { entry, pageOf } from "./models/gemini-list.ts";
import { one, wanted } from "./models/wanted.ts";
import { accept, presented } from "./presented.ts";

const VERSIONS = ["v1beta", "v1alpha"];
/** With a version, or without: LiteLLM adds none to a base URL. `GET /v1/models` belongs to the list of models. */
const ASKED = [
  ...VERSIONS.map((version) => `/${version}/**:target`),
  "/v1/models/**:target",
  "/models/**:target",
];

const google = gemini().server!;
const openai = images().server!;
const OPENAI = "/v1beta/openai/";

/** A version that is written twice, and the word that says that a model follows. */
const BEFORE = /^(?:(?:v1|v1beta|v1alpha)\/)?(?:models\/)?/;

export default defineFrontend({
  api: 1,
  name: "gemini",
  summary: "Google's Gemini API: POST /v1beta/models/<model>:generateContent",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: accept("x-goog-api-key", "key", "bearer") },
  },
  setup({ accept: schemes }, ctx) {
    const protocol = gemini();
    const listed = geminiListed();
    const vectors: { readonly [verb: string]: Protocol } = {
      batchEmbedContents: geminiEmbedding(),
      embedContent: geminiEmbeddingOne(),
    };
    const models = (x: Arrival) => {
      const { kind, provider, privacy } = wanted(x, ctx.catalogue.works());
      const all = ctx.catalogue.list({ identity: x.identity, privacy, kind });
      return provider === undefined ? all : all.filter((model) => model.provider === provider);
    };
    return {
      protocol,
      secret: (headers, query) => presented(headers, schemes, query),
      // Clients of OpenAI's API have a base URL below ours, and no route for all of its paths.
      fault: (fault, x, to) => (x.path.startsWith(OPENAI) ? openai : google).fault(fault, to),
      routes: [
        {
          method: "POST",
          path: ASKED,
          op: "generate",
          protocols: [listed, ...Object.values(vectors)],
          read: (x, body) => {
            const { model, verb } = targetOf(x, Object.keys(vectors));
            const protocol = vectors[verb];
            if (protocol) return { model, stream: false, edits: { model }, protocol };
            const asked = askedFor(x, body, model, verb);
            return asked.edits?.["alt"] === "json" ? { ...asked, protocol: listed } : asked;
          },
        },
        {
          method: "GET",
          path: VERSIONS.map((version) => `/${version}/models`),
          serve: (x) => ({ status: 200, body: pageOf(models(x), x.query) }),
        },
        {
          method: "GET",
          path: VERSIONS.map((version) => `/${version}/models/**:id`),
          serve: (x) => ({ status: 200, body: entry(one(models(x), x.params["id"] ?? "")) }),
        },
      ],
    };
  },
});

const VERBS: { readonly [verb: string]: Pick<RouteInput, "op" | "name" | "stream"> } = {
  generateContent: { op: "generate", stream: false },
  streamGenerateContent: { op: "generate", stream: true },
  countTokens: { op: "count", name: "count", stream: false },
};

/** Names of models have colons too: the last one stands before what is asked. */
function targetOf({ params }: Arrival, more: readonly string[]): { model: string; verb: string } {
  const target = params["target"] ?? "";
  const colon = target.lastIndexOf(":");
  const verb = target.slice(colon + 1);
  const known = [...Object.keys(VERBS), ...more];
  if (colon < 0 || !known.includes(verb))
    return fail(
      "not_found",
      `Unknown method "${colon < 0 ? target : verb}". Use ${known.join(", ")}, each as /v1beta/models/<model>:<method>.`,
      { code: "unknown_method" },
    );
  const model = target.slice(0, colon).replace(BEFORE, "");
  if (model === "")
    fail("invalid", "The path names no model.", { param: "model", code: "invalid_request" });
  return { model, verb };
}

function askedFor({ query }: Arrival, body: Body, model: string, verb: string): RouteInput {
  const { op, name, stream } = VERBS[verb]!;
  if (op === "generate" && (body["generateContentRequest"] ?? body["generate_content_request"]))
    fail("invalid", "generateContentRequest is asked of countTokens alone.", {
      param: "generateContentRequest",
      code: "invalid_request",
    });
  const alt = stream && query.get("alt") !== "sse" ? "json" : undefined;
  // Where the body says the same, what stands in the path counts.
  return { model, op, name, stream, edits: { model, stream, alt } };
}
