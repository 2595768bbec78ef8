// Gateways that share a store, as the store knows them.
import type { Opt } from "../model/values.ts";

/** What opens a store: one gateway process. */
export interface StoreOwner {
  instance: string;
  /** Where it runs; for people. */
  about?: Opt<InstanceFacts>;
}

/** What an instance says of itself when it opens the store. */
export interface InstanceFacts {
  readonly version: string;
  readonly host: string;
  readonly pid: number;
}

/** An instance, as the store knows it. */
export interface InstanceState {
  readonly instance: string;
  readonly about?: Opt<InstanceFacts>;
  /** left: it ended in good order. dead: its lease was over, and what it had open is presumed. */
  readonly state: "live" | "left" | "dead";
  /** When a sign of life came last, in Unix milliseconds. */
  readonly heard: number;
}

/** What a store tells a gateway. New types are added within api 1: one that the host does not know is passed over. */
export type StoreNews =
  /** Another instance has changed keys: nothing that is remembered of any key counts any more. */
  | { readonly type: "keys" }
  /** Calls of an instance that was taken for dead were settled as estimated. */
  | { readonly type: "presumed"; readonly instance: string; readonly calls: number }
  /** Rows that an instance had written are gone, from one seq to another: the database was set back, and no instance had a copy. */
  | {
      readonly type: "lost";
      readonly instance: string;
      readonly from: number;
      readonly to: number;
    };
