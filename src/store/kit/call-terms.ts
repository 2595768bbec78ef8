// Call terms are the facts that calls share: the key, the target, and the price. A commit stores
// equal terms once for all its rows.
import type { Reserve } from "../../plugin/index.ts";

/** The facts that calls share. */
export type CallTerms = Pick<
  Reserve,
  "key" | "target" | "privacy" | "labels" | "account" | "price" | "clientRequest"
>;

/** Terms as a JSON list. */
export type TermsTuple = readonly [
  key: string,
  provider: string,
  model: string,
  protocol: string | null,
  credential: string,
  privacy: Reserve["privacy"],
  labels: Reserve["labels"],
  price: string | null,
  clientRequest: NonNullable<Reserve["clientRequest"]> | null,
  account?: string,
];

/** Index of the labels in the terms tuple. */
export const LABELS_INDEX = 6;

/** Serializes terms as a JSON list. The account is omitted if there is none. */
export const serializeTerms = ({
  key,
  target,
  privacy,
  labels,
  price,
  clientRequest,
  account,
}: CallTerms): string =>
  JSON.stringify([
    key,
    target.provider,
    target.model,
    target.protocol,
    target.credential,
    privacy,
    labels,
    price,
    clientRequest,
    ...(account === undefined ? [] : [account]),
  ]);

/** Returns the terms of a JSON list. */
export const termsFromTuple = ([
  key,
  provider,
  model,
  protocol,
  credential,
  privacy,
  labels,
  price,
  clientRequest,
  account,
]: TermsTuple): CallTerms => ({
  key,
  target: { provider, model, protocol, credential },
  privacy,
  labels,
  account,
  price,
  clientRequest: clientRequest ?? undefined,
});
