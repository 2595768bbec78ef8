// A config's store: set up like every plugin, and opened. It is there before the gateway's other services, and has the context's alone.
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { needsOf } from "../../config/needs.ts";
import { problem } from "../../config/problems.ts";
import type { GatewayConfig } from "../../config/types.ts";
import type { Scope } from "../../lib/scope.ts";
import { fail, faultOf, sayable } from "../../model/error.ts";
import { strangerMade } from "../../plugin/members.ts";
import type { Logger } from "../../plugin/context.ts";
import type { Commands } from "../../plugin/plugin.ts";
import type { StoreNews, StoreOwner } from "../../plugin/instance.ts";
import type { StoreSize } from "../../plugin/keeping.ts";
import type { Store } from "../../plugin/store.ts";
import { createContext } from "../generation/context.ts";
import { within } from "./queued-command.ts";
import type { ContextServices } from "./services.ts";

export async function setUpStore(
  { store, file }: Pick<GatewayConfig, "store" | "file">,
  contextServices: ContextServices,
  scope: Scope,
): Promise<Store> {
  const catalogue = () => fail("internal", "A store has no catalogue.");
  const needs = needsOf(store.definition, store.options, { file, env: contextServices.env });
  const ctx = createContext({ id: "store", scope, services: contextServices, needs, catalogue });
  const made = await store.definition.setup(store.options, ctx);
  const stranger = strangerMade("store", made);
  if (stranger) {
    const { part, name, near } = stranger;
    const { message, hint } = problem.unknownMember(store.use, part, name, near);
    fail("invalid", hint === undefined ? message : `${message}; ${hint}`);
  }
  return made as Store;
}

/** `hear`: what it tells of other instances. `instance`: this process, as the store is to know it. */
export async function openStore(
  config: Pick<GatewayConfig, "store" | "file">,
  contextServices: ContextServices,
  scope: Scope,
  {
    version,
    hear,
    instance,
  }: { version: string; hear?: (news: StoreNews) => void; instance?: string },
): Promise<Store> {
  const { log } = contextServices;
  const store = await setUpStore(config, contextServices, scope);
  const owner: StoreOwner = {
    instance: instance ?? crypto.randomUUID(),
    about: {
      version,
      host: hostname(),
      pid: process.pid,
      // Only a gateway is known by a name of its own before the store is open.
      program: instance === undefined ? "command" : "gateway",
    },
  };
  const heard = (news: StoreNews): void => {
    try {
      tell(log, news);
      hear?.(news);
    } catch (error) {
      log.error({ err: error }, "news of the store could not be used");
    }
  };
  const { presumed } = await joined(store, () => store.open(owner, heard), log);
  if (presumed > 0)
    log.warn({ presumed }, "calls that a crash left open were settled as estimated");
  if (!store.audit)
    log.warn({}, "this store keeps no audit log: what operators change is not written down");
  return behindFence(store, async () => {
    log.warn(
      { instance: owner.instance },
      "the store took this gateway for dead; it is opened again",
    );
    await store.open(owner, heard);
  });
}

const PAUSE_MS = { first: 100, last: 1_000 };

/** What several gateways share lies elsewhere, and may come up later than they do: an orchestrator is not to see one end again and again. */
async function joined<T>(
  { lease }: Pick<Store, "lease">,
  open: () => Promise<T>,
  log: Logger,
): Promise<T> {
  let told = "";
  for (let pause = PAUSE_MS.first; ; pause = Math.min(PAUSE_MS.last, pause * 2))
    try {
      return await open();
    } catch (error) {
      const kind = faultOf(error)?.kind ?? "unavailable";
      if (!lease || kind !== "unavailable") throw error;
      // The same again is no news.
      const what = faultOf(error)?.code ?? sayable(error);
      if (what !== told)
        log.error({ err: error }, "the store cannot be opened yet; it is tried again until it can");
      told = what;
      await sleep(pause);
    }
}

/** A store of several instances may take this one for dead while it lives: then it is opened again, and hears the batch again. */
function behindFence(store: Store & Commands, open: () => Promise<void>): Store & Commands {
  if (!store.lease) return store;
  let opening: Promise<void> | undefined;
  /** Asked once more by the one that was opened again. */
  const fencing = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      if (faultOf(error)?.code !== "fenced") throw error;
      await (opening ??= open().finally(() => (opening = undefined)));
      return work();
    }
  };
  const { audit } = store;
  return {
    lease: store.lease,
    commands: store.commands,
    open: (owner, hear) => store.open(owner, hear),
    apply: (batch) => fencing(() => store.apply(batch)),
    key: (digest) => store.key(digest),
    keys: (page) => store.keys(page),
    audit: audit && {
      begin: (entry) => fencing(() => audit.begin(entry)),
      end: (end) => fencing(() => audit.end(end)),
      list: (page) => audit.list(page),
    },
    accounts: store.accounts && ((page) => store.accounts!(page)),
    counted: store.counted && ((limits, at) => store.counted!(limits, at)),
    entries: (query, page, of) => store.entries(query, page, of),
    totals: (query, of) => store.totals(query, of),
    price: store.price && ((hash) => store.price!(hash)),
    verify: store.verify && (() => store.verify!()),
    shared: store.shared && ((name, make) => store.shared!(name, make)),
    size: store.size && (() => store.size!()),
    instances: store.instances && (() => store.instances!()),
    crossings: store.crossings,
    handsOver: store.handsOver,
    keeping: store.keeping,
    moving: store.moving,
  } as Store & Commands;
}

function tell(log: Logger, news: StoreNews): void {
  const { type, ...fields } = news;
  if (type === "presumed")
    log.warn(fields, "calls that another instance left open were settled as estimated");
  if (type === "alone")
    log.error(
      fields,
      "the store cannot be reached; what is set aside of budgets is spent, and told later",
    );
  if (type === "together")
    log.warn(fields, "the store is reached again, and knows all that happened meanwhile");
  if (type === "retold")
    log.warn(fields, "what an earlier process had left on this disk was told to the store");
  if (type === "unkept")
    log.error(fields, "what is told to the store is not kept on this disk any more");
  if (type === "away") log.error(fields, "the store cannot be reached; new calls are refused");
  if (type === "lost") log.error(fields, "the store has lost rows of the ledger");
}

const SIZE_MS = 1_000;

/** Of a store that says it within a second; readings do without it. */
export const sizeOf = async (store: Store): Promise<StoreSize | undefined> =>
  store.size && within(SIZE_MS, store.size()).catch(() => undefined);

/** Resolves when the store has answered; rejects where it takes no rows, or is silent for so long. */
export async function ledgerAnswers(
  {
    ledger,
    store,
  }: {
    readonly ledger: { readonly healthy: boolean };
    readonly store: Pick<Store, "entries" | "lease">;
  },
  withinMs: number,
): Promise<void> {
  // What several gateways share lies elsewhere: to start this one again would mend nothing there.
  if (store.lease) return;
  if (!ledger.healthy) fail("unavailable", "The ledger takes no rows.");
  const silent = sleep(withinMs, undefined, { ref: false }).then(() =>
    fail("unavailable", "The ledger does not answer."),
  );
  await Promise.race([store.entries({}, { limit: 1 }), silent]);
}
