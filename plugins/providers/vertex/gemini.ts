// Gemini on Vertex: the gemini protocol, where a model stands below its publisher.
import {
  type CallContext,
  type ClientHalf,
  type JsonObject,
  type Outgoing,
  type Protocol,
} from "tollgate/plugin";
import { gemini } from "tollgate/protocols/gemini";
import { modelAt } from "./places.ts";

export function vertexGemini(): Protocol<"chat"> {
  const own = gemini();
  const client = own.client as ClientHalf<"chat">;
  return {
    ...own,
    client: {
      ...client,
      paths: {
        generate: (of) =>
          modelAt(
            "google",
            of.model,
            of.stream ? "streamGenerateContent?alt=sse" : "generateContent",
          ),
        count: (of) => modelAt("google", of.model, "countTokens"),
      },
      prepare(out, of) {
        client.prepare?.(out, of);
        if (of.op === "count") counted(out);
        for (const field of ["serviceTier", "store"]) lost(out, of, field);
      },
    },
  };
}

/** What is counted stands at the top here, and with no more than is counted. */
function counted(out: Outgoing): void {
  const inner = out.get("generateContentRequest") as JsonObject | undefined;
  if (inner === undefined) return;
  out.drop("generateContentRequest");
  for (const field of ["contents", "systemInstruction", "tools", "generationConfig"])
    if (inner[field] !== undefined) out.set(field, inner[field]);
}

/** Words of Google's other API, which this one answers with an error. */
function lost(out: Outgoing, of: CallContext, field: string): void {
  if (out.get(field) === undefined) return;
  out.drop(field);
  of.lose(field, "dropped");
}
