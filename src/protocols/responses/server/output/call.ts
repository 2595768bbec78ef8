import type { JsonObject, OpenBlock } from "../../../../plugin/index.ts";
import { seal } from "../../../envelope.ts";
import { itemId } from "../object.ts";
import { parsed, text } from "../../../json.ts";
import { callId, ORIGIN } from "../../words.ts";
import { announce, conclude, headOf, type OutputContext, type Item } from "./item.ts";

export function call(
  block: Extract<OpenBlock, { type: "call" }>,
  index: number,
  desk: OutputContext,
): Item {
  const declared = desk.name(block.name);
  const custom = declared.custom || block.tool === "custom";
  // Upstreams that know functions only were given a function of one text: it is taken out of its wrapping again.
  const wrapped = custom && block.tool === "function";
  const id = itemId(desk.to, custom ? "ctc" : "fc", index);
  const at = { item_id: id, output_index: index };
  const left: string[] = [];
  const key = custom ? "input" : "arguments";
  const kind = custom ? "response.custom_tool_call_input" : "response.function_call_arguments";
  const shape = (status: string, said: string): JsonObject => ({
    id,
    type: custom ? "custom_tool_call" : "function_call",
    status,
    call_id: callId(block.id),
    name: declared.name,
    ...(declared.namespace !== undefined && { namespace: declared.namespace }),
    [key]: said,
  });
  const head = headOf(at);
  let said = "";
  announce(index, shape("in_progress", ""), desk);
  return {
    index,
    left,
    harmless: false,
    takes: () => false,
    open() {},
    inside(e) {
      if (e.type === "proof" && e.proof.origin !== ORIGIN)
        left.push(seal({ proof: e.proof, of: "call" }));
      if (e.type !== "delta" || e.text === "") return;
      said += e.text;
      if (!wrapped) desk.delta(`${kind}.delta`, head, e.text, "");
    },
    close() {},
    done(cut) {
      let whole: string | undefined = said;
      if (wrapped) whole = unwrapped(said);
      else if (!custom && said === "") whole = "{}";
      // A call that may have lost its end is not concluded: a client would run it.
      if (cut && (custom ? !wrapped || whole === undefined : !isObject(said)))
        return conclude(index, shape("incomplete", wrapped ? "" : said), desk);
      whole ??= said;
      if (wrapped) desk.delta(`${kind}.delta`, head, whole, "");
      desk.say(`${kind}.done`, {
        ...at,
        ...(!custom && { name: declared.name }),
        [key]: whole,
      });
      return conclude(index, shape("completed", whole), desk);
    },
  };
}

const isObject = (args: string): boolean => parsed(args) !== undefined;

function unwrapped(args: string): string | undefined {
  return text(parsed(args)?.["input"]);
}
