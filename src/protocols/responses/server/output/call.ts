import type { JsonObject, OpenBlock } from "../../../../plugin/index.ts";
import { seal } from "../../../proof-envelope.ts";
import { itemId } from "../response-object.ts";
import { parseObject, asText } from "../../../json-values.ts";
import { callId, ORIGIN } from "../../constants.ts";
import { addItem, finishItem, headOf, type OutputContext, type OutputItem } from "./item.ts";

export function callItem(
  block: Extract<OpenBlock, { type: "call" }>,
  index: number,
  desk: OutputContext,
): OutputItem {
  const declared = desk.restoreName(block.name);
  const custom = declared.custom || block.tool === "custom";
  // For providers that only support functions, a custom tool was wrapped in a function with one
  // text argument. The text is unwrapped here.
  const wrapped = custom && block.tool === "function";
  const id = itemId(desk.to, custom ? "ctc" : "fc", index);
  const at = { item_id: id, output_index: index };
  const left: string[] = [];
  const key = custom ? "input" : "arguments";
  const kind = custom ? "response.custom_tool_call_input" : "response.function_call_arguments";
  const shape = (status: string, argsText: string): JsonObject => ({
    id,
    type: custom ? "custom_tool_call" : "function_call",
    status,
    call_id: callId(block.id),
    name: declared.name,
    ...(declared.namespace !== undefined && { namespace: declared.namespace }),
    [key]: argsText,
  });
  const head = headOf(at);
  let argsText = "";
  addItem(index, shape("in_progress", ""), desk);
  return {
    index,
    pendingProofs: left,
    isPartialSafe: false,
    accepts: () => false,
    open() {},
    inside(e) {
      if (e.type === "proof" && e.proof.origin !== ORIGIN)
        left.push(seal({ proof: e.proof, precedingBlock: "call" }));
      if (e.type !== "delta" || e.text === "") return;
      argsText += e.text;
      if (!wrapped) desk.delta(`${kind}.delta`, head, e.text, "");
    },
    close() {},
    done(cut) {
      let whole: string | undefined = argsText;
      if (wrapped) whole = unwrapCustomInput(argsText);
      else if (!custom && argsText === "") whole = "{}";
      // A truncated call is not completed, because a client would run it.
      if (cut && (custom ? !wrapped || whole === undefined : !isObject(argsText)))
        return finishItem(index, shape("incomplete", wrapped ? "" : argsText), desk);
      whole ??= argsText;
      if (wrapped) desk.delta(`${kind}.delta`, head, whole, "");
      desk.write(`${kind}.done`, {
        ...at,
        ...(!custom && { name: declared.name }),
        [key]: whole,
      });
      return finishItem(index, shape("completed", whole), desk);
    },
  };
}

const isObject = (args: string): boolean => parseObject(args) !== undefined;

function unwrapCustomInput(args: string): string | undefined {
  return asText(parseObject(args)?.["input"]);
}
