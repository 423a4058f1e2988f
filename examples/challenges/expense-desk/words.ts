// Words of which badge codes are made.

export const COLOURS = ["amber", "azure", "coral", "ebony", "ivory", "jade", "olive", "pearl", "ruby", "silver", "teal", "violet"];

export const ANIMALS = ["badger", "crane", "falcon", "gecko", "heron", "ibis", "lynx", "marten", "otter", "raven", "stoat", "tapir"];
