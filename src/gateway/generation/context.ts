import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { wallClock } from "../../lib/wall-clock.ts";
import type { DeclaredNeeds } from "../../config/needs.ts";
import type { Scope } from "../../lib/scope.ts";
import { fail } from "../../model/error.ts";
import { readDeclared } from "./declared-files.ts";
import type { Catalogue } from "../../catalogue/catalogue.ts";
import { quote } from "../../money/quote.ts";
import type { Context } from "../../plugin/context.ts";
import { matches } from "../../walk/candidates/pattern.ts";
import { lent } from "../../walk/hook-failures.ts";
import { ask } from "../../walk/walk.ts";
import type { ContextServices, Services } from "../services/services.ts";
import type { OwnPort } from "../http/own-port.ts";

export interface ContextOptions {
  /** The path in gateway.yaml. */
  id: string;
  scope: Scope;
  /** A store is set up before the rest is there: it gets what does not need a store. */
  services: ContextServices & Partial<Pick<Services, "keys" | "reports">>;
  needs: DeclaredNeeds;
  /** The generation's own; there once its providers are. */
  catalogue: () => Catalogue;
}

export function createContext({ id, scope, services, needs, catalogue }: ContextOptions): Context {
  const log = services.log.child({ plugin: id });
  return {
    id,
    log,
    signal: scope.signal,
    own: (thing) => scope.own(thing),
    onDispose: (undo) => scope.defer(undo),
    every: (ms, tick) =>
      scope.every(ms, tick, (error) => log.error({ err: error }, "a background task failed")),
    shared: (key, create, end) => services.shared.take(scope, `${id}\n${key}`, create, end),
    peers<Q, A>(answer: (question: Q) => A | undefined) {
      services.peers.answers(scope, id, answer);
      return (question: Q) => services.peers.ask(id, question) as Promise<A | undefined>;
    },
    // Most plugins never fetch, and the module takes long to load.
    fetch: async (to, init) => {
      const { createLine } = await import("./provider-access.ts");
      const credential = { name: "", fields: {}, weight: 1, models: undefined, zdr: undefined };
      const line = { credential, signal: scope.over };
      const reached = isPath(to)
        ? { ...line, ...(await ownReach(services.own())) }
        : {
            ...line,
            reach: undefined,
            dispatcher: undefined,
            origins: needs.origins,
            metadata: needs.metadata,
            proxy: services.proxy,
          };
      return createLine(reached)
        .fetch(to, init)
        .catch((problem: unknown) => {
          throw lent(problem);
        });
    },
    ask: (request, of) => ask(id, request, of),
    keys: services.keys!,
    catalogue: view(catalogue),
    price: (candidate, usage) => quote(candidate, usage, wallClock()),
    ledger: {
      entries: (query, page, of) => services.reports!.entries(query, page, of),
      totals: (query, of) => services.reports!.totals(query, of),
      ...(services.reports?.counted && {
        counted: (limits, at) => services.reports!.counted!(limits, at),
      }),
    },
    readings: () => services.readings(),
    env: (name) =>
      needs.env.includes(name)
        ? services.env[name]
        : fail("internal", `This plugin does not declare the variable ${name} in its needs.env.`, {
            code: "not_declared",
          }),
    readFile: (path) => readDeclared(needs, path),
    stateDir() {
      const dir = join(services.stateDir, id.replace(/[^\w.-]/g, "_"));
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      return dir;
    },
  };
}

async function ownReach(own: OwnPort) {
  const { agentTo } = await import("./own-agent.ts");
  return {
    reach: { base: own.origin },
    dispatcher: agentTo(own),
    called: "This gateway's own port",
  };
}

/** "//host" names another one. */
const isPath = (to: string | URL): boolean => typeof to === "string" && /^\/(?![/\\])/.test(to);

/** What a key may see of the catalogue. */
function view(catalogue: () => Catalogue): Context["catalogue"] {
  return {
    list: ({ identity, privacy, kind }) =>
      catalogue().list({
        kind,
        privacy,
        may: identity?.models && ((id) => identity.models!.some((p) => matches(p, id))),
      }),
    find: (id) => catalogue().listing(id),
    works: () => catalogue().works,
  };
}
