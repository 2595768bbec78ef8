// The file system interface that the store uses for the gateway's own disk. Tests pass an in-memory
// implementation.
import { mkdir, open, readdir, readFile, rm } from "node:fs/promises";

/** A file that is only appended to. */
export interface DiskFile {
  write(data: string | Buffer): Promise<unknown>;
  /** Resolves when the data survives a power loss. */
  datasync(): Promise<void>;
  truncate(length: number): Promise<void>;
  close(): Promise<void>;
}

export interface Disk {
  /** Creates the folder and its parents. */
  makeFolder(path: string): Promise<unknown>;
  /** Opens the file, or creates it, for appending. */
  append(path: string): Promise<DiskFile>;
  /** Names of the entries in a folder. */
  list(folder: string): Promise<readonly string[]>;
  read(path: string): Promise<string>;
  /** Removes a file, or a folder with all entries. A missing path is not an error. */
  remove(path: string): Promise<void>;
}

/**
 * The file system of the operating system. Only the gateway's user can read the files that it
 * writes.
 */
export const systemDisk: Disk = {
  makeFolder: (path) => mkdir(path, { recursive: true, mode: 0o700 }),
  append: (path) => open(path, "a", 0o600),
  list: (folder) => readdir(folder),
  read: (path) => readFile(path, "utf8"),
  remove: (path) => rm(path, { recursive: true, force: true }),
};
