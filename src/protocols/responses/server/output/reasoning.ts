import type { JsonObject, Proof } from "../../../../plugin/index.ts";
import { seal } from "../../../envelope.ts";
import { itemId } from "../object.ts";
import { ORIGIN } from "../../words.ts";
import { announce, conclude, headOf, type OutputContext, type Item } from "./item.ts";

export function reasoning(digest: boolean, index: number, desk: OutputContext): Item {
  const id = itemId(desk.to, "rs", index);
  const at = { item_id: id, output_index: index };
  const raw = !digest && desk.dialect.reasoning === "text";
  let proof: Proof | undefined;
  let said = "";
  let begun = false;
  const place = raw ? { ...at, content_index: 0 } : { ...at, summary_index: 0 };
  const head = headOf(place);
  const part = () => ({ type: raw ? "reasoning_text" : "summary_text", text: said });
  const kind = raw ? "response.reasoning_text" : "response.reasoning_summary_text";
  const frame = raw ? "response.content_part" : "response.reasoning_summary_part";
  announce(index, { id, type: "reasoning", summary: [] }, desk);
  return {
    index,
    left: [],
    harmless: true,
    takes: () => false,
    open() {},
    inside(e) {
      if (e.type === "proof") proof = e.proof;
      if (e.type !== "delta" || e.text === "") return;
      if (!begun) desk.say(`${frame}.added`, { ...place, part: part() });
      begun = true;
      said += e.text;
      desk.delta(`${kind}.delta`, head, e.text, "");
    },
    close() {
      if (!begun) return;
      desk.say(`${kind}.done`, { ...place, text: said });
      desk.say(`${frame}.done`, { ...place, part: part() });
    },
    done(cut) {
      const encrypted = secret(proof, said, digest);
      const item: JsonObject = {
        id,
        type: "reasoning",
        summary: begun && !raw ? [part()] : [],
        ...(begun && raw && { content: [part()] }),
        // Readers take a string or nothing: null is an error to some.
        ...(encrypted !== undefined && { encrypted_content: encrypted }),
        ...(cut && { status: "incomplete" }),
      };
      return conclude(index, item, desk);
    },
  };
}

/**
 * This wire's own secret travels bare. Another's is sealed together with the text that it vouches for; and so is a text
 * that is unsigned, because clients drop reasoning that has no secret, and some upstreams want theirs back.
 */
function secret(proof: Proof | undefined, said: string, digest: boolean): string | undefined {
  if (proof?.origin === ORIGIN) return proof.data;
  if (!proof && said === "") return undefined;
  return seal({ proof, text: said === "" ? undefined : said, summary: digest || undefined });
}
