// Reasoning that its provider has encrypted is read by the account that made it, and by no other.
import { fail } from "../../../model/error.ts";
import type { CallContext, Outgoing } from "../../../plugin/index.ts";
import { asList, asObject, asText } from "../../json-values.ts";
import { itemTypeOf } from "../item-types.ts";
import { withoutId } from "../stored-references.ts";

/** How a refusal says that another account's was sent. */
const REJECTION_CODES = ["invalid_encrypted_content"];

/** Without it the conversation goes on: the model thinks anew. What was compacted is all that there is of it, and stays. */
function stripEncryptedReasoning(out: Outgoing, of: CallContext): void {
  const kept = asList(out.get("input")).filter((raw) => {
    const item = asObject(raw);
    if (!item || asText(item["encrypted_content"]) === undefined) return true;
    if (itemTypeOf(item) === "reasoning") return false;
    return fail("unsupported", "A compacted conversation is read by the account that made it.", {
      code: "account_bound",
      param: "input",
    });
  });
  of.reportLoss("input", "dropped", "account_bound");
  out.set("input", kept.map(withoutId));
}

export const accountBound = { errorCodes: REJECTION_CODES, strip: stripEncryptedReasoning };
