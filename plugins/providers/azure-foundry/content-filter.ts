// Adds details of Azure's content filter to errors: the categories that caused a rejection.
import type { ClientHalf, Fault, JsonObject, Operation, Protocol } from "tollgate/plugin";
import { asObject } from "tollgate/protocols/compatible";

/** Returns the protocol with filter details in its errors. */
export function withContentFilterDetails<K extends Operation>(protocol: Protocol<K>): Protocol<K> {
  const client = protocol.client as ClientHalf<K>;
  return {
    ...protocol,
    client: {
      ...client,
      decodeFault: (status, headers, body) =>
        addFilterCategories(client.decodeFault(status, headers, body), body),
    },
  };
}

/** Adds the names of the matched categories, as Azure names them. */
function addFilterCategories(fault: Fault, body: Buffer): Fault {
  const inner = innerErrorIn(body);
  if (!inner || inner["code"] !== "ResponsibleAIPolicyViolation") return fault;
  const categories =
    asObject(inner["content_filter_result"]) ?? asObject(inner["content_filter_results"]);
  return {
    ...fault,
    kind: "content_policy",
    code: "content_filter",
    ...(categories && { details: { content_filter_result: categories } }),
  };
}

function innerErrorIn(body: Buffer): JsonObject | undefined {
  try {
    const error = asObject(asObject(JSON.parse(body.toString()))?.["error"]);
    return asObject(error?.["innererror"]);
  } catch {
    return undefined;
  }
}
