// GET /v1/models: what the presented key may use, in one body that the SDKs of both families read.
import { defineFrontend, fail, type Arrival, type ListedModel } from "tollgate/plugin";
import { images } from "tollgate/protocols/images";
import { messages } from "tollgate/protocols/messages";
import { page } from "./models/page.ts";
import { row } from "./models/row.ts";
import { wanted } from "./models/wanted.ts";
import { at } from "./paths.ts";
import { accept, presented } from "./presented.ts";

/** The two shapes of an error; every OpenAI-like protocol has the same one. */
const anthropic = messages().server!;
const openai = images().server!;
const speaksMessages = (x: Arrival) => x.headers["anthropic-version"] !== undefined;

export default defineFrontend({
  api: 1,
  name: "models",
  summary: "The models that a key may use",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: accept("bearer", "x-api-key") },
  },
  setup({ accept: schemes }, ctx) {
    const listed = (x: Arrival): readonly ListedModel[] => {
      const { kind, provider, privacy } = wanted(x, ctx.catalogue.works());
      const all = ctx.catalogue.list({ identity: x.identity, privacy, kind });
      return provider === undefined ? all : all.filter((model) => model.provider === provider);
    };
    const rowed = (model: ListedModel) => row(model, ctx.catalogue.works().get(model.kind));
    return {
      secret: (headers) => presented(headers, schemes),
      fault: (fault, x) => (speaksMessages(x) ? anthropic : openai).fault(fault, { id: x.id }),
      routes: [
        {
          method: "GET",
          path: at("/models"),
          serve: (x) => ({
            status: 200,
            body: page(listed(x).map(rowed), x.query, speaksMessages(x)),
          }),
        },
        {
          method: "GET",
          path: at("/models/**:id"),
          serve: (x) => ({ status: 200, body: rowed(one(listed(x), x.params["id"] ?? "")) }),
        },
      ],
    };
  },
});

/** A model that the key may not use is not there. */
function one(models: readonly ListedModel[], id: string): ListedModel {
  const clear = unescaped(id);
  return (
    models.find((model) => model.id === id) ??
    models.find((model) => model.id === clear) ??
    fail(
      "not_found",
      `There is no model ${clear} that this key may use. GET /v1/models lists them.`,
      {
        code: "model_not_found",
        param: "model",
      },
    )
  );
}

/** Some clients escape the slash of an id, and some escape it again. */
function unescaped(id: string): string {
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}
