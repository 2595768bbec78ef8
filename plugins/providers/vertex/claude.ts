// Claude on Vertex: the messages protocol, with the model in the URL and the version in the body.
// Streams are the same as Anthropic's.
import type { CallContext, ClientHalf, Outgoing, Protocol } from "tollgate/plugin";
import { valueFields } from "tollgate/protocols/references";
import { claude, messages } from "tollgate/protocols/messages";
import { bareName, modelUrl } from "./locations.ts";

/** The first API version of Vertex. If a client requests a newer date, that version is used. */
const VERSION = "vertex-2023-10-16";
/** Anthropic's first API version, which clients sent for years. Vertex has another name for it. */
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

/** Returns the same call with the model's Anthropic name, by which its capabilities are known. */
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
  // Token counting has one URL for all models, and the model is in the body.
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
