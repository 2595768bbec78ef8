// The contract as checks, for authors of plugins:
//
//     import { conformance } from "tollgate/testing";
//     import plugin from "./index.ts";
//     for (const { name, run } of conformance(plugin, { with: { region: "eu" }, credential: { api_key: "canary-7f3a" } })) test(name, run);
import assert from "node:assert/strict";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Work } from "../model/work.ts";
import type { Context } from "../plugin/context.ts";
import type { Definition } from "../plugin/define.ts";
import { check, type Check } from "./check.ts";
import { frontend } from "./conformance/frontend.ts";
import { innocence } from "./conformance/innocence.ts";
import { filled, manners, secretsIn } from "./conformance/manners.ts";
import { middleware } from "./conformance/middleware.ts";
import { needs } from "./conformance/needs.ts";
import { observer } from "./conformance/observer.ts";
import { privacy } from "./conformance/privacy.ts";
import { provider } from "./conformance/provider.ts";
import { leakIn, type Subject } from "./conformance/subject.ts";

/**
 * What `conformance` is told of the plugin under test: how an operator would mount it, and what its upstream really
 * says.
 */
export interface ConformanceOptions {
  /** Options, as they would stand under `with:`. */
  readonly with?: Readonly<Record<string, unknown>>;
  /** Of a provider. Its secrets are looked for wherever they must not be: give it ones that are like nothing else. */
  readonly credential?: Readonly<Record<string, unknown>>;
  /**
   * A folder of recordings: for a provider with several protocols, one folder in it for each. They are cut, split and
   * broken off, alone and through a real gateway. A protocol of Tollgate's own that the kit's upstream speaks needs none;
   * for every other one the check fails without them. False: there are none, and the decoders stay unchecked.
   */
  readonly recordings?: URL | string | false;
  /** What answers the plugin's `ctx.fetch`, such as a token's address. Absent: nothing does. */
  readonly fetch?: Context["fetch"];
  /** Where the plugin's module is, to watch its import in a process of its own: `import.meta.resolve("./index.ts")`. */
  readonly module?: URL | string;
  /** Of the kinds that the plugin's native endpoints serve and a package adds: their `sample` is what they are asked. */
  readonly works?: readonly Work[];
}

/**
 * The laws of the contract for one plugin, as checks. A test file calls it while it is loaded, and hands each check to
 * its runner. This call itself runs nothing of the plugin; each check makes a setup of its own and ends it. It throws
 * where an option is no place of a file.
 */
export function conformance(definition: Definition, options: ConformanceOptions = {}): Check[] {
  const subject = subjectOf(definition, options);
  const kind = definition["~tollgate"];
  const work = [
    ...innocence(subject),
    ...needs(subject),
    ...(kind === "provider" ? provider(subject) : []),
    ...(kind === "frontend" ? frontend(subject) : []),
    ...(kind === "middleware" ? [...middleware(subject), ...privacy(subject)] : []),
    ...(kind === "observer" ? observer(subject) : []),
  ];
  // It searches what all the others have heard, so it listens for itself where it is run alone.
  const secrecy = check("its secrets are in no log line, error or event", async () => {
    if (subject.heard.length === 0) for (const { run } of work) await run().catch(() => {});
    for (const thing of subject.heard)
      assert.equal(leakIn(thing, subject.secrets), undefined, "a secret was said aloud");
  });
  return [...manners(subject), ...work, secrecy].map(({ name, run }) => ({
    name: `${definition.name}: ${name}`,
    run,
  }));
}

function subjectOf(definition: Definition, given: ConformanceOptions): Subject {
  const ofCredential = definition["~tollgate"] === "provider" ? definition.credential : undefined;
  const options = filled(definition.options, given.with ?? {});
  const credential = filled(ofCredential, given.credential ?? {});
  return {
    definition,
    options,
    credential,
    recordings: given.recordings
      ? pathOf(given.recordings)
      : (given.recordings as false | undefined),
    module: given.module === undefined ? undefined : addressOf(given.module),
    secrets: [...secretsIn(definition.options, options), ...secretsIn(ofCredential, credential)],
    fetch: given.fetch,
    works: given.works ?? [],
    heard: [],
  };
}

const pathOf = (place: URL | string): string =>
  place instanceof URL || place.startsWith("file:") ? fileURLToPath(place) : place;
const addressOf = (place: URL | string): string =>
  place instanceof URL ? place.href : /^[a-z]+:/.test(place) ? place : pathToFileURL(place).href;
