/** A run's id as the name of a folder: ids hold no slashes, but some systems refuse more. */
export function folderName(run: string): string {
  return run.replace(/[:*?"<>|]/g, "_");
}
