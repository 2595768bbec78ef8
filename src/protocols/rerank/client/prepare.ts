// The dialect, on both lanes.
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { list } from "../../json.ts";
import type { RerankDialect } from "../dialect.ts";
import { textsIn } from "./request.ts";

export function prepare(out: Outgoing, of: CallContext, dialect: RerankDialect): void {
  const most = out.get("top_k");
  if (most !== undefined) {
    out.drop("top_k");
    if (most !== null && out.get("top_n") === undefined) out.set("top_n", most);
  }
  // Its clients say it always, and nothing here reads it but true.
  if (out.get("truncation") !== undefined) out.drop("truncation");
  if (dialect.returns === false && out.get("return_documents") !== undefined)
    out.drop("return_documents");
  const documents = list(out.get("documents"));
  if (dialect.texts && documents.some((one) => typeof one !== "string"))
    out.set("documents", textsIn(documents as never, of.model));
  for (const field of dialect.drop ?? []) {
    const value = out.get(field);
    if (value === undefined) continue;
    out.drop(field);
    if (value !== null) of.lose(field, "dropped");
  }
}
