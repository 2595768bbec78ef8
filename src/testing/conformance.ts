// The contract as checks, for authors of plugins:
//
//     import { conformance } from "tollgate/testing";
//     import plugin from "./index.ts";
//     for (const { name, run } of conformance(plugin, { with: { region: "eu" }, credential: { api_key: "canary-7f3a" } })) test(name, run);
import assert from "node:assert/strict";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { OperationSpec } from "../model/operations/operation-spec.ts";
import type { Context } from "../plugin/context.ts";
import type { Definition } from "../plugin/define.ts";
import { createCheck, type Check } from "./check.ts";
import { frontendChecks } from "./conformance/frontend.ts";
import { sideEffectChecks } from "./conformance/side-effects.ts";
import { withDefaults, definitionChecks, findSecrets } from "./conformance/definition.ts";
import { middlewareChecks } from "./conformance/middleware.ts";
import { needsChecks, runScript } from "./conformance/declared-needs.ts";
import { observerChecks } from "./conformance/observer.ts";
import { providerChecks } from "./conformance/provider.ts";
import { findLeak, type ConformanceSubject } from "./conformance/subject.ts";

// What was said in private is over when its answer has left.
/** Of a middleware whose module is known: it is run in a process of its own, whose whole memory is searched. */
const privacyChecks = ({ module, options }: ConformanceSubject): Check[] =>
  module === undefined
    ? []
    : [
        createCheck(
          "under privacy it keeps nothing, in no file, no log and no memory",
          async () => {
            const found = JSON.parse(
              await runScript("private-data-probe", JSON.stringify({ module, options })),
            ) as string[];
            assert.deepEqual(found, [], `what was said in private is still in ${found.join(", ")}`);
          },
        ),
      ];

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
  readonly operations?: readonly OperationSpec[];
}

/**
 * The laws of the contract for one plugin, as checks. A test file calls it while it is loaded, and hands each check to
 * its runner. This call itself runs nothing of the plugin; each check makes a setup of its own and ends it. It throws
 * where an option is no place of a file.
 */
export function conformanceChecks(
  definition: Definition,
  options: ConformanceOptions = {},
): Check[] {
  const subject = createSubject(definition, options);
  const kind = definition["~tollgate"];
  const work = [
    ...sideEffectChecks(subject),
    ...needsChecks(subject),
    ...(kind === "provider" ? providerChecks(subject) : []),
    ...(kind === "frontend" ? frontendChecks(subject) : []),
    ...(kind === "middleware" ? [...middlewareChecks(subject), ...privacyChecks(subject)] : []),
    ...(kind === "observer" ? observerChecks(subject) : []),
  ];
  // It searches what all the others have heard, so it listens for itself where it is run alone.
  const secrecy = createCheck("its secrets are in no log line, error or event", async () => {
    if (subject.observed.length === 0) for (const { run } of work) await run().catch(() => {});
    for (const thing of subject.observed)
      assert.equal(findLeak(thing, subject.secrets), undefined, "a secret was said aloud");
  });
  return [...definitionChecks(subject), ...work, secrecy].map(({ name, run }) => ({
    name: `${definition.name}: ${name}`,
    run,
  }));
}

function createSubject(definition: Definition, given: ConformanceOptions): ConformanceSubject {
  const ofCredential = definition["~tollgate"] === "provider" ? definition.credential : undefined;
  const options = withDefaults(definition.options, given.with ?? {});
  const credential = withDefaults(ofCredential, given.credential ?? {});
  return {
    definition,
    options,
    credential,
    recordings: given.recordings
      ? toPath(given.recordings)
      : (given.recordings as false | undefined),
    module: given.module === undefined ? undefined : toModuleUrl(given.module),
    secrets: [
      ...findSecrets(definition.options, options),
      ...findSecrets(ofCredential, credential),
    ],
    fetch: given.fetch,
    operations: given.operations ?? [],
    observed: [],
  };
}

const toPath = (place: URL | string): string =>
  place instanceof URL || place.startsWith("file:") ? fileURLToPath(place) : place;
const toModuleUrl = (place: URL | string): string =>
  place instanceof URL ? place.href : /^[a-z]+:/.test(place) ? place : pathToFileURL(place).href;
