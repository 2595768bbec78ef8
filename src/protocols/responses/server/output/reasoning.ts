import type { JsonObject, Proof } from "../../../../plugin/index.ts";
import { seal } from "../../../proof-envelope.ts";
import { itemId } from "../response-object.ts";
import { ORIGIN } from "../../constants.ts";
import { addItem, finishItem, headOf, type OutputContext, type OutputItem } from "./item.ts";

export function reasoningItem(digest: boolean, index: number, desk: OutputContext): OutputItem {
  const id = itemId(desk.to, "rs", index);
  const at = { item_id: id, output_index: index };
  const raw = !digest && desk.dialect.reasoning === "text";
  let proof: Proof | undefined;
  let textContent = "";
  let begun = false;
  const place = raw ? { ...at, content_index: 0 } : { ...at, summary_index: 0 };
  const head = headOf(place);
  const part = () => ({ type: raw ? "reasoning_text" : "summary_text", text: textContent });
  const kind = raw ? "response.reasoning_text" : "response.reasoning_summary_text";
  const frame = raw ? "response.content_part" : "response.reasoning_summary_part";
  addItem(index, { id, type: "reasoning", summary: [] }, desk);
  return {
    index,
    pendingProofs: [],
    isPartialSafe: true,
    accepts: () => false,
    open() {},
    inside(e) {
      if (e.type === "proof") proof = e.proof;
      if (e.type !== "delta" || e.text === "") return;
      if (!begun) desk.write(`${frame}.added`, { ...place, part: part() });
      begun = true;
      textContent += e.text;
      desk.delta(`${kind}.delta`, head, e.text, "");
    },
    close() {
      if (!begun) return;
      desk.write(`${kind}.done`, { ...place, text: textContent });
      desk.write(`${frame}.done`, { ...place, part: part() });
    },
    done(cut) {
      const encrypted = encryptedContent(proof, textContent, digest);
      const item: JsonObject = {
        id,
        type: "reasoning",
        summary: begun && !raw ? [part()] : [],
        ...(begun && raw && { content: [part()] }),
        // Readers expect a string or no member. Some reject null.
        ...(encrypted !== undefined && { encrypted_content: encrypted }),
        ...(cut && { status: "incomplete" }),
      };
      return finishItem(index, item, desk);
    },
  };
}

/**
 * Returns the encrypted content. This protocol's own is sent without an envelope. Another
 * provider's proof is sealed together with the text that it signs. Unsigned text is sealed too,
 * because clients drop reasoning without encrypted content, and some providers need it back.
 */
function encryptedContent(
  proof: Proof | undefined,
  textContent: string,
  digest: boolean,
): string | undefined {
  if (proof?.origin === ORIGIN) return proof.data;
  if (!proof && textContent === "") return undefined;
  return seal({
    proof,
    text: textContent === "" ? undefined : textContent,
    summary: digest || undefined,
  });
}
