// Words for badge codes.

export const COLORS = ["amber", "azure", "coral", "ebony", "ivory", "jade", "olive", "pearl", "ruby", "silver", "teal", "violet"];

export const ANIMALS = ["badger", "crane", "falcon", "gecko", "heron", "ibis", "lynx", "marten", "otter", "raven", "stoat", "tapir"];
