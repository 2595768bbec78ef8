// Gemini on Vertex: the gemini protocol, with models under their publisher in the URL.
import {
  type CallContext,
  type ClientHalf,
  type JsonObject,
  type Outgoing,
  type Protocol,
} from "tollgate/plugin";
import { gemini } from "tollgate/protocols/gemini";
import { modelUrl } from "./locations.ts";

export function vertexGemini(): Protocol<"chat"> {
  const own = gemini();
  const client = own.client as ClientHalf<"chat">;
  return {
    ...own,
    client: {
      ...client,
      paths: {
        generate: (of) =>
          modelUrl(
            "google",
            of.model,
            of.stream ? "streamGenerateContent?alt=sse" : "generateContent",
          ),
        count: (of) => modelUrl("google", of.model, "countTokens"),
      },
      prepare(out, of) {
        client.prepare?.(out, of);
        if (of.actionType === "count") adaptCountRequest(out);
        for (const field of ["serviceTier", "store"]) dropField(out, of, field);
      },
    },
  };
}

/**
 * Converts a token count request. Vertex expects the fields at the top level, and only those that
 * are counted.
 */
function adaptCountRequest(out: Outgoing): void {
  const inner = out.get("generateContentRequest") as JsonObject | undefined;
  if (inner === undefined) return;
  out.remove("generateContentRequest");
  for (const field of ["contents", "systemInstruction", "tools", "generationConfig"])
    if (inner[field] !== undefined) out.set(field, inner[field]);
}

/** Drops a field of Google's other API that Vertex rejects. */
function dropField(out: Outgoing, of: CallContext, field: string): void {
  if (out.get(field) === undefined) return;
  out.remove(field);
  of.reportLoss(field, "dropped");
}
