"""Words that synthetic voices say to a spotter, so that it learns what it does not know."""

# Everyday words; none of those that the tests of a spotter keep for themselves.
_WORDS = """
    yes no on off stop start open close light lamp door window water table chair music volume play
    pause next back home phone call mother father sister brother friend garden green yellow orange
    purple black white river mountain ocean summer winter morning evening never always often again
    very much many little better under over about after before between paper pencil letter number
    money market kitchen bottle sugar coffee butter cheese apple lemon baby young old people person
    woman hello thanks please sorry answer question listen speak read write work walk run jump sleep
    eat drink drive train plane boat bridge road street city country
"""
WORDS = tuple(_WORDS.split())
