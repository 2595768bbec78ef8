// Where the config's texts come from: the disk, which remembers what it said, or what another process read there. Every
// process of one gateway is built from the same texts, whatever has happened to the files since.
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { problem } from "./problems.ts";
import { readText } from "./source.ts";

export type Texts = ReadonlyMap<string, string>;

export interface Disk {
  text(file: string): ReturnType<typeof readText>;
  /** The files of a folder, absolute; throws when there is no such folder. */
  list(folder: string): Promise<string[]>;
  /** By absolute path, what could be read so far. */
  readonly texts: Texts;
}

export function realDisk(): Disk {
  const texts = new Map<string, string>();
  return {
    texts,
    async text(file) {
      const read = await readText(file);
      if ("text" in read) texts.set(file, read.text);
      return read;
    },
    list: async (folder) => (await readdir(folder)).map((name) => join(folder, name)),
  };
}

export const keptDisk = (texts: Texts): Disk => ({
  texts,
  async text(file) {
    const text = texts.get(file);
    return text === undefined ? { words: problem.fileMissing(file) } : { text };
  },
  list: async (folder) => [...texts.keys()].filter((file) => dirname(file) === folder),
});
