// The reference of provider failures, from the list that `npm run rig faults` tests the gateway
// with.
import { FAULTS, type Outcome } from "../../test/rig/faults/failure-modes.ts";
import { page, type ReferencePage, table } from "./markdown.ts";

const CLIENT = {
  served: "complete",
  passed: "unchanged",
  broken: "partial, then error",
} as const;

function describeOutcome({ client, of }: Outcome): string {
  const result = typeof client === "number" ? `${client}` : CLIENT[client];
  return of ? `${result} (${of})` : result;
}
const describeRow = ({ row, of }: Outcome): string => (of ? `${row} (${of})` : row);
const listDistinct = (all: readonly string[]): string => [...new Set(all)].join("; ");
const capitalize = (text: string): string => text[0]!.toUpperCase() + text.slice(1);

export const providerFailurePages = (): ReferencePage[] => [
  page("provider-failures.md", [
    "# Provider failure modes",
    "This page is for operators. It lists the response of the client and the ledger entry for each failure of a " +
      "provider. `npm run rig faults` runs each failure against the gateway: through every frontend, with every " +
      "provider protocol, streaming and non-streaming.",
    "The outcomes are those of a single call (`retries: { per_target: 1, total: 1 }`). With retries and other " +
      "candidates, a call that fails before its first token is followed by " +
      "[another one](../guides/fallback.md#retries).",
    table(
      ["Term", "Meaning"],
      [
        ["Status", "An error with this status, in the client's protocol"],
        ["complete", "The complete response"],
        [
          "unchanged",
          "The damaged bytes, because the protocol did not require the gateway to read them",
        ],
        ["partial, then error", "Content, then an error in the client's protocol"],
        ["void", "Nothing is billed"],
        ["estimated", "The gateway counts the input and the output that was received"],
        ["exact", "Billed as the provider counted"],
      ],
    ),
    "If several outcomes are listed, they depend on the protocol, or on whether content had been sent before the " +
      "failure. Every wait ends within its limit under [`timeouts`](../guides/fallback.md#timeouts). The ledger " +
      "entry is durable before the client has the end of its response.",
    table(
      ["Failure", "Non-streaming response", "Stream", "Ledger entry"],
      FAULTS.map(({ name, whole, stream }) => [
        capitalize(name),
        listDistinct(whole.map(describeOutcome)),
        listDistinct(stream.map(describeOutcome)),
        listDistinct([...whole, ...stream].map(describeRow)),
      ]),
    ),
  ]),
];
