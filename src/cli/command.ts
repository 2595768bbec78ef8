// What a command is: a few words for people, its options, and the work.
export interface CliCommand {
  /** After "tollgate": "explain <model>". */
  readonly usage: string;
  /** What it does, in one to three sentences. */
  readonly about: string;
  readonly options: Options;
  /** How many words may follow; none by default. */
  readonly words?: { readonly least: number; readonly most: number };
  readonly examples: readonly string[];
  /** Commands of two words: this one's name, then theirs. Their words are those after both. */
  readonly parts?: Readonly<Record<string, Part>>;
  /** Which of them is meant when none is named. */
  readonly usual?: string;
  /** The command that is meant, where words alone do not say which options it takes. Help is of that one too. */
  narrow?(given: CliInput): Promise<CliCommand>;
  /** The exit code: 0 fine, 1 failed, 78 gateway.yaml has errors. */
  run(given: CliInput): Promise<number>;
}

export interface Part extends CliCommand {
  /** One line. */
  readonly summary: string;
}

/** A command of two words that is nothing but its parts, and the one of them that is meant when none is named. */
export const group = (
  name: string,
  about: string,
  parts: Readonly<Record<string, Part>>,
  usual?: string,
): CliCommand => ({
  usage: `${name} ${usual === undefined ? "<command>" : "[command]"} [options]`,
  about,
  options: {},
  parts,
  ...(usual !== undefined && { usual }),
  examples: Object.values(parts).map(({ examples }) => examples[0]!),
  // It is not called: the part is found before it.
  run: () => Promise.reject(new Error("one of its parts runs")),
});

export type Options = Readonly<Record<string, Option>>;

export interface Option {
  /** The word for the option's value in help: "file". Absent: the option takes no value. */
  readonly value?: string;
  readonly short?: string;
  readonly about: string;
  /** May be given several times. */
  readonly many?: true;
}

export interface CliInput {
  readonly words: readonly string[];
  readonly json: boolean;
  /** The value of an option, if it was given. */
  text(name: string): string | undefined;
  texts(name: string): readonly string[];
  has(name: string): boolean;
}

export const EXIT = { fine: 0, failed: 1, config: 78 } as const;

/** Every command takes these. */
export const COMMON: Options = {
  json: { about: "print JSON" },
  help: { short: "h", about: "show this" },
};

/** Shared by all that read a gateway.yaml. */
export const CONFIG: Options = {
  config: {
    short: "c",
    value: "file",
    about: "the gateway.yaml to use; ./gateway.yaml by default",
  },
};

/** Shared by all that may talk to a running gateway. */
export const STATE: Options = {
  "state-dir": {
    value: "folder",
    about: "the running gateway's state folder, in place of the file's",
  },
};

/** Of commands that may talk to a running gateway, or work on what its gateway.yaml names. */
export const PLACE: Options = { ...CONFIG, ...STATE };
