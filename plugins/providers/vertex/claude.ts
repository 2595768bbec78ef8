// Claude on Vertex: the messages protocol, with the model in the address and the version in the body. Its stream is Anthropic's own.
import type { CallContext, ClientHalf, Outgoing, Protocol } from "tollgate/plugin";
import { valueFields } from "tollgate/protocols/references";
import { claude, messages } from "tollgate/protocols/messages";
import { bareName, modelUrl } from "./locations.ts";

/** What Vertex has taken from the beginning. A client that names a newer date is answered in that. */
const VERSION = "vertex-2023-10-16";
/** Anthropic's own first version, which all its clients named for years: Vertex has another name for it. */
const FIRST_ANTHROPIC_VERSION = "2023-06-01";

export function vertexClaude(): Protocol<"chat"> {
  const own = messages(claude);
  const client = own.client as ClientHalf<"chat">;
  return {
    ...own,
    zdrAllowedFields: [...own.zdrAllowedFields!, ["its version", valueFields("anthropic_version")]],
    client: {
      ...client,
      paths: {
        generate: (of) =>
          modelUrl("anthropic", of.model, of.stream ? "streamRawPredict" : "rawPredict"),
        count: modelUrl("anthropic", "count-tokens", "rawPredict"),
      },
      encodeRequest: (r, of) => client.encodeRequest(r, withAnthropicName(of)),
      prepare(out, of) {
        client.prepare?.(out, withAnthropicName(of));
        moveHeadersToBody(out, of);
      },
      mayHideReasoning: (out, of) => client.mayHideReasoning!(out, withAnthropicName(of)),
    },
  };
}

/** The same call, under the name by which it is known what the model takes. */
const withAnthropicName = (of: CallContext): CallContext => ({
  actionType: of.actionType,
  action: of.action,
  model: bareName(of.model).replace("@", "-"),
  info: of.info,
  stream: of.stream,
  params: of.params,
  query: of.query,
  stateMode: of.stateMode,
  reportLoss: (field, how, code) => of.reportLoss(field, how, code),
});

function moveHeadersToBody(out: Outgoing, of: CallContext): void {
  // A count is asked at one address for all models, which are named in its body.
  if (of.actionType === "count") out.set("model", bareName(of.model));
  else out.remove("model");
  const versionHeader = out.headers["anthropic-version"];
  if (out.get("anthropic_version") === undefined)
    out.set(
      "anthropic_version",
      versionHeader !== undefined && versionHeader > FIRST_ANTHROPIC_VERSION
        ? versionHeader
        : VERSION,
    );
  out.setHeader("anthropic-version");
}
