/** A place for files that belong to runs. */
export interface StoreFiles {
  /** The folder for the output files of a run. */
  outputs(run: string): string;
}

/** The part of a store that is about files, where that is a matter of the store. */
export interface FileKeeper {
  readonly files?: StoreFiles;
}
