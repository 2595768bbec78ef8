// Settings of Claude Code that the gateway delivers: `GET /managed/settings`. Clients compute the
// checksum of the settings that they have, and ask once an hour whether it is current.
import { createHash } from "node:crypto";
import {
  fail,
  type Context,
  type Json,
  type RequestHead,
  type RouteResponse,
} from "tollgate/plugin";

type Settings = { readonly [name: string]: Json };

/** One entry of the option. The first entry that applies to an account is used. */
export interface SettingsEntry {
  /** Unset: every account. */
  readonly account?: string | undefined;
  readonly file: string;
}

interface Document {
  readonly settings: Settings;
  readonly checksum: string;
}

type AccountDocument = Document & { readonly account: string | undefined };
type Files = Pick<Context, "readFile">;

export class ManagedSettings {
  readonly #read: () => Promise<readonly AccountDocument[]>;
  #documents: readonly AccountDocument[];
  /** Message of the last failed refresh, which is logged once. */
  #failure: string | undefined;

  private constructor(
    read: () => Promise<readonly AccountDocument[]>,
    documents: readonly AccountDocument[],
  ) {
    this.#read = read;
    this.#documents = documents;
  }

  /**
   * Reads the files. Throws an error with the position if one is invalid.
   * @param env Variables that every document contains unless it sets them itself.
   */
  static async load(
    entries: readonly SettingsEntry[],
    ctx: Files,
    env: Record<string, string> | undefined,
  ): Promise<ManagedSettings> {
    const read = () => readDocuments(entries, ctx, env);
    return new ManagedSettings(read, await read());
  }

  /** Reads the files again. If one is invalid, the error is logged, and the settings are kept. */
  async refresh(log: Context["log"]): Promise<void> {
    try {
      this.#documents = await this.#read();
      this.#failure = undefined;
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.#failure) log.error({ err: error }, "managed settings not refreshed");
      this.#failure = message;
    }
  }

  /** Answers with the settings of the client's account. */
  serve({ identity, headers }: RequestHead): RouteResponse {
    const document = this.#documents.find(
      ({ account }) => account === undefined || account === identity?.account,
    );
    if (!document)
      return fail("not_found", "This gateway has no managed settings for your account.", {
        code: "no_managed_settings",
      });
    const { settings, checksum } = document;
    const etag = `"${checksum}"`;
    const known = [headers["if-none-match"] ?? ""].flat().join(",");
    const shared = { etag, "cache-control": "private, no-cache" };
    if (known.split(",").some((one) => matches(one.trim(), checksum)))
      return { status: 304, headers: shared };
    const uuid = createHash("sha256")
      .update(`settings ${identity?.id ?? ""}`)
      .digest("hex");
    return { status: 200, headers: shared, body: { uuid, checksum, settings } };
  }
}

async function readDocuments(
  entries: readonly SettingsEntry[],
  ctx: Files,
  env: Record<string, string> | undefined,
): Promise<readonly AccountDocument[]> {
  const read = entries.map(async ({ account, file }) => {
    const text = (await ctx.readFile(file)).toString("utf8");
    return documentOf(account, withEnv(parseSettings(text, file), env));
  });
  const documents = await Promise.all(read);
  const hasDefault = documents.some(({ account }) => account === undefined);
  return env && !hasDefault ? [...documents, documentOf(undefined, { env })] : documents;
}

const documentOf = (account: string | undefined, settings: Settings): AccountDocument => ({
  account,
  settings,
  checksum: checksumOf(settings),
});

const matches = (tag: string, checksum: string): boolean =>
  tag === "*" || tag.replace(/^W\//, "").replace(/^"(.*)"$/, "$1") === checksum;

/** The checksum that Claude Code computes: of the JSON with sorted keys and without spaces. */
export const checksumOf = (settings: Settings): string =>
  `sha256:${createHash("sha256")
    .update(JSON.stringify(sorted(settings)))
    .digest("hex")}`;

function sorted(value: Json): Json {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((one: Json) => sorted(one));
  const object = value as Settings;
  return Object.fromEntries(
    Object.keys(object)
      .toSorted()
      .map((name) => [name, sorted(object[name]!)]),
  );
}

function withEnv(settings: Settings, env: Record<string, string> | undefined): Settings {
  if (!env) return settings;
  return { ...settings, env: { ...env, ...(settings["env"] as Settings | undefined) } };
}

/** Parses a settings file. Errors contain its line and column. */
export function parseSettings(text: string, file: string): Settings {
  let settings: Json;
  try {
    settings = JSON.parse(text) as Json;
  } catch (error) {
    const [line, column] = positionOf(text, (error as Error).message);
    throw new Error(`${file}:${line}:${column}: the file is not valid JSON`, { cause: error });
  }
  if (typeof settings !== "object" || settings === null || Array.isArray(settings))
    throw new Error(`${file}:1:1: the settings must be a JSON object`);
  const env = (settings as Settings)["env"];
  const isText = (value: unknown) => typeof value === "string";
  if (env !== undefined && !(isObject(env) && Object.values(env).every(isText))) {
    const [line, column] = positionAt(text, text.indexOf('"env"'));
    throw new Error(`${file}:${line}:${column}: env must be an object of texts`);
  }
  return settings as Settings;
}

const isObject = (value: Json): value is Settings =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns line and column of a syntax error. At the end of the text, the message has none. */
function positionOf(text: string, message: string): readonly [number, number] {
  const at = /position (\d+)/.exec(message)?.[1];
  return positionAt(text, at === undefined ? text.length : Number(at));
}

function positionAt(text: string, at: number): readonly [number, number] {
  const before = text.slice(0, Math.max(0, at)).split("\n");
  return [before.length, before.at(-1)!.length + 1];
}
