// Applies the dialect in both modes.
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { asList } from "../../json-values.ts";
import type { RerankDialect } from "../dialect.ts";
import { requireTexts } from "./request.ts";

export function prepare(out: Outgoing, of: CallContext, dialect: RerankDialect): void {
  const most = out.get("top_k");
  if (most !== undefined) {
    out.remove("top_k");
    if (most !== null && out.get("top_n") === undefined) out.set("top_n", most);
  }
  // Voyage's clients always send `truncation`. Backends of this protocol have no such field and
  // always truncate.
  if (out.get("truncation") !== undefined) out.remove("truncation");
  if (dialect.returnsDocuments === false && out.get("return_documents") !== undefined)
    out.remove("return_documents");
  const documents = asList(out.get("documents"));
  if (dialect.textOnly && documents.some((one) => typeof one !== "string"))
    out.set("documents", requireTexts(documents as never, of.model));
  for (const field of dialect.dropFields ?? []) {
    const value = out.get(field);
    if (value === undefined) continue;
    out.remove(field);
    if (value !== null) of.reportLoss(field, "dropped");
  }
}
