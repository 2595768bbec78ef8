// GET /v1/models: what the presented key may use, in one body that the SDKs of OpenAI and Anthropic read, and in another for Google's.
import { defineFrontend, type Arrival, type ListedModel } from "tollgate/plugin";
import { gemini } from "tollgate/protocols/gemini";
import { images } from "tollgate/protocols/images";
import { messages } from "tollgate/protocols/messages";
import { entry, pageOf } from "./models/gemini-list.ts";
import { page } from "./models/page.ts";
import { row } from "./models/row.ts";
import { one, wanted } from "./models/wanted.ts";
import { at, onAzure, onGoogle } from "./paths.ts";
import { accept, presented } from "./presented.ts";

/** The shapes of an error; every OpenAI-like protocol has the same one. */
const anthropic = messages().server!;
const openai = images().server!;
const google = gemini().server!;
const speaksMessages = (x: Arrival) => x.headers["anthropic-version"] !== undefined;
/** Its SDKs name themselves; others are told by where they put their key, which is where no other family does. */
const speaksGemini = (x: Arrival) =>
  x.headers["x-goog-api-client"] !== undefined ||
  x.presents.some((place) => place === "x-goog-api-key" || place === "?key");
const familyOf = (x: Arrival) =>
  speaksGemini(x) ? google : speaksMessages(x) ? anthropic : openai;

export default defineFrontend({
  api: 1,
  name: "models",
  summary: "The models that a key may use",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: accept("bearer", "x-api-key", "api-key", "x-goog-api-key", "key") },
  },
  setup({ accept: schemes }, ctx) {
    const listed = (x: Arrival): readonly ListedModel[] => {
      const { kind, provider, privacy } = wanted(x, ctx.catalogue.works());
      const all = ctx.catalogue.list({ identity: x.identity, privacy, kind });
      return provider === undefined ? all : all.filter((model) => model.provider === provider);
    };
    const rowed = (model: ListedModel) => row(model, ctx.catalogue.works().get(model.kind));
    return {
      secret: (headers, query) => presented(headers, schemes, query),
      fault: (fault, x) => familyOf(x).fault(fault, { id: x.id }),
      routes: [
        {
          method: "GET",
          path: [...at("/models"), ...onAzure("/models"), ...onGoogle("/models")],
          serve: (x) => ({
            status: 200,
            body: speaksGemini(x)
              ? pageOf(listed(x), x.query)
              : page(listed(x).map(rowed), x.query, speaksMessages(x)),
          }),
        },
        {
          method: "GET",
          path: [...at("/models/**:id"), ...onAzure("/models/**:id"), ...onGoogle("/models/**:id")],
          serve: (x) => {
            const model = one(listed(x), x.params["id"] ?? "");
            return { status: 200, body: speaksGemini(x) ? entry(model) : rowed(model) };
          },
        },
      ],
    };
  },
});
