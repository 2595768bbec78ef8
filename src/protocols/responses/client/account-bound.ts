// Encrypted reasoning can be read only by the provider account that created it.
import { fail } from "../../../model/error.ts";
import type { CallContext, Outgoing } from "../../../plugin/index.ts";
import { asList, asObject, asText } from "../../json-values.ts";
import { itemTypeOf } from "../item-types.ts";
import { withoutId } from "../stored-references.ts";

/** Error codes of a provider that received encrypted reasoning of another account. */
const REJECTION_CODES = ["invalid_encrypted_content"];

/**
 * Removes encrypted reasoning. The conversation can continue without it, because the model reasons
 * again. A compacted conversation cannot be removed, because it is the only remaining history, so
 * the request is rejected.
 */
function stripEncryptedReasoning(out: Outgoing, of: CallContext): void {
  const kept = asList(out.get("input")).filter((raw) => {
    const item = asObject(raw);
    if (!item || asText(item["encrypted_content"]) === undefined) return true;
    if (itemTypeOf(item) === "reasoning") return false;
    return fail(
      "unsupported",
      "A compacted conversation can be read only by the provider account that created it.",
      {
        code: "account_bound",
        param: "input",
      },
    );
  });
  of.reportLoss("input", "dropped", "account_bound");
  out.set("input", kept.map(withoutId));
}

export const accountBound = { errorCodes: REJECTION_CODES, strip: stripEncryptedReasoning };
