// Claude on Vertex: the messages protocol, with the model in the address and the version in the body. Its stream is Anthropic's own.
import type { CallContext, ClientHalf, Outgoing, Protocol } from "tollgate/plugin";
import { plain } from "tollgate/protocols/look";
import { claude, messages } from "tollgate/protocols/messages";
import { bareName, modelAt } from "./places.ts";

/** What Vertex has taken from the beginning. A client that names a newer date is answered in that. */
const VERSION = "vertex-2023-10-16";
/** Anthropic's own first version, which all its clients named for years: Vertex has another name for it. */
const FIRST = "2023-06-01";

export function vertexClaude(): Protocol<"chat"> {
  const own = messages(claude);
  const client = own.client as ClientHalf<"chat">;
  return {
    ...own,
    reviewed: [...own.reviewed!, ["its version", plain("anthropic_version")]],
    client: {
      ...client,
      paths: {
        generate: (of) =>
          modelAt("anthropic", of.model, of.stream ? "streamRawPredict" : "rawPredict"),
        count: modelAt("anthropic", "count-tokens", "rawPredict"),
      },
      request: (r, of) => client.request(r, called(of)),
      prepare(out, of) {
        client.prepare?.(out, called(of));
        inBody(out, of);
      },
      thinks: (out, of) => client.thinks!(out, called(of)),
    },
  };
}

/** The same call, under the name by which it is known what the model takes. */
const called = (of: CallContext): CallContext => ({
  op: of.op,
  name: of.name,
  model: bareName(of.model).replace("@", "-"),
  info: of.info,
  stream: of.stream,
  params: of.params,
  query: of.query,
  state: of.state,
  lose: (field, how, code) => of.lose(field, how, code),
});

function inBody(out: Outgoing, of: CallContext): void {
  // A count is asked at one address for all models, which are named in its body.
  if (of.op === "count") out.set("model", bareName(of.model));
  else out.drop("model");
  const said = out.headers["anthropic-version"];
  if (out.get("anthropic_version") === undefined)
    out.set("anthropic_version", said !== undefined && said > FIRST ? said : VERSION);
  out.header("anthropic-version");
}
